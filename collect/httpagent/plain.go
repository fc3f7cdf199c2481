package httpagent

import (
	"bytes"
	"strconv"

	"tidemark/collect/poller"
	"tidemark/model"
)

// maxPlainChunks bounds the chunks of an answer that is not left to net/http, which has its own idea of how many small ones are too many.
const maxPlainChunks = 64

// plainValue reads an answer that is whole and of which the body alone is wanted; false when that is left to net/http.
func (f *frame) plainValue(q *model.HTTPRequest, answer []byte, maxBodyBytes int64) (poller.Result, bool) {
	if q.Retrieve != "BODY" || q.OutputJSON || f.unusual || f.count > maxPlainChunks {
		return poller.Result{}, false
	}
	if kind := answer[f.kind[0]:f.kind[1]]; bytes.ContainsRune(kind, ';') {
		if _, parameter, _ := bytes.Cut(kind, []byte(";")); !is(bytes.TrimSpace(parameter), "charset=utf-8") {
			return poller.Result{}, false
		}
	}
	if !Matches(q.StatusCodes, f.status) {
		return poller.Result{Outcome: poller.NotSupported, Text: []byte(mismatch(q, f.status).Error())}, true
	}
	var body []byte
	if f.size == inChunks {
		body = unchunked(answer[f.head:])
	} else {
		body = append([]byte{}, answer[f.head:]...)
	}
	return poller.Result{Outcome: poller.Value, Text: body}, int64(len(body)) <= maxBodyBytes
}

// unchunked copies a body out of its chunks, which frame has looked at.
func unchunked(chunks []byte) []byte {
	body := make([]byte, 0, len(chunks))
	for {
		line, rest, _ := bytes.Cut(chunks, []byte("\r\n"))
		size, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil || size == 0 || int(size)+2 > len(rest) {
			return body
		}
		body, chunks = append(body, rest[:size]...), rest[size+2:]
	}
}

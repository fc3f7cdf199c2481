package zbx

import (
	"bytes"
	"strconv"
)

// TextForm says which of the two text requests a body is. Devices from before JSON still send them.
type TextForm uint8

// The text forms.
const (
	// NoText is a body of another form.
	NoText TextForm = iota
	// TextValue is "host:key:value", answered by "OK".
	TextValue
	// TextActiveChecks is "ZBX_GET_ACTIVE_CHECKS\nhost\n", answered by lines "key:delay:lastlogsize" and "ZBX_EOF".
	TextActiveChecks
)

// TextChecksPrefix starts the text request for active checks.
const TextChecksPrefix = "ZBX_GET_ACTIVE_CHECKS\n"

// TextRequest is a request in one of the text forms; its slices lie in the body.
type TextRequest struct {
	Form             TextForm
	Host, Key, Value []byte
}

// DecodeText reads a text request. Form is NoText for anything else. A colon inside the key's brackets belongs to the key.
func DecodeText(body []byte) TextRequest {
	if rest, ok := bytes.CutPrefix(body, []byte(TextChecksPrefix)); ok {
		host, _, _ := bytes.Cut(rest, []byte{'\n'})
		return TextRequest{Form: TextActiveChecks, Host: bytes.TrimRight(host, "\r\x00")}
	}
	body = bytes.TrimRight(bytes.TrimLeft(body, " \t\r\n"), "\r\n\x00")
	host, rest, ok := bytes.Cut(body, []byte{':'})
	if !ok || len(host) == 0 || len(host) > MaxNameBytes || host[0] == '{' || host[0] == '<' || bytes.IndexByte(host, '\n') >= 0 {
		return TextRequest{}
	}
	end := keyEnd(rest)
	if end <= 0 || end > MaxNameBytes || end == len(rest) {
		return TextRequest{}
	}
	return TextRequest{Form: TextValue, Host: host, Key: rest[:end], Value: rest[end+1:]}
}

// keyEnd returns the index of the colon behind the item key that b starts with, len(b) when there is none.
func keyEnd(b []byte) int {
	depth, quoted := 0, false
	for i, c := range b {
		switch {
		case c == '"' && depth > 0 && (i == 0 || b[i-1] != '\\'):
			quoted = !quoted
		case quoted:
		case c == '[':
			depth++
		case c == ']' && depth > 0:
			depth--
		case c == ':' && depth == 0:
			return i
		}
	}
	return len(b)
}

// AppendTextCheck appends one line of the text answer to a request for active checks.
func AppendTextCheck(dst []byte, c *Check) []byte {
	dst = append(dst, c.Key...)
	dst = append(dst, ':')
	dst = appendInt(dst, c.DelaySeconds)
	dst = append(dst, ':')
	dst = appendInt(dst, int64(min(c.LastLogSize, 1<<62)))
	return append(dst, '\n')
}

// TextChecksEnd ends the text answer to a request for active checks.
const TextChecksEnd = "ZBX_EOF\n"

func appendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

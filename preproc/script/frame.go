package script

import (
	"encoding/binary"
	"fmt"
	"io"
)

// A request is: timeout in milliseconds, lengths of the options (JSON, empty for none), the source and the value, each uint32
// little-endian, then the three. An answer is: one byte, lengths of the text and of the log, both uint32, then both. The bytes are those of
// the constants below.
const (
	answerValue   = 0
	answerNothing = 1
	answerError   = 2
)

const (
	// maxFrameBytes bounds one part of a frame, maxOptionBytes its options.
	maxFrameBytes  = 64 << 20
	maxOptionBytes = 1 << 20
	// maxLogBytes bounds what is kept of a script's log.
	maxLogBytes = 16 << 10
)

type request struct {
	timeoutMillis          uint32
	options, source, value []byte
}

func writeRequest(w io.Writer, r request) error {
	out := make([]byte, 16, 16+len(r.options)+len(r.source)+len(r.value))
	binary.LittleEndian.PutUint32(out, r.timeoutMillis)
	for i, part := range [][]byte{r.options, r.source, r.value} {
		binary.LittleEndian.PutUint32(out[4+4*i:], uint32(len(part)))
		out = append(out, part...)
	}
	_, err := w.Write(out)
	return err
}

func readRequest(r io.Reader) (request, error) {
	var head [16]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return request{}, err
	}
	options, source, value := binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[8:]), binary.LittleEndian.Uint32(head[12:])
	if options > maxOptionBytes || source > maxFrameBytes || value > maxFrameBytes {
		return request{}, fmt.Errorf("a request of %d, %d and %d bytes, at most %d, %d and %d are taken", options, source, value, maxOptionBytes, maxFrameBytes, maxFrameBytes)
	}
	all := make([]byte, options+source+value)
	if _, err := io.ReadFull(r, all); err != nil {
		return request{}, err
	}
	out := request{timeoutMillis: binary.LittleEndian.Uint32(head[:])}
	out.options, all = all[:options:options], all[options:]
	out.source, out.value = all[:source:source], all[source:]
	return out, nil
}

// answer is what a worker says of one script.
type answer struct {
	kind      byte
	text, log []byte
}

func writeAnswer(w io.Writer, a answer) error {
	out := make([]byte, 9, 9+len(a.text)+len(a.log))
	out[0] = a.kind
	binary.LittleEndian.PutUint32(out[1:], uint32(len(a.text)))
	binary.LittleEndian.PutUint32(out[5:], uint32(len(a.log)))
	_, err := w.Write(append(append(out, a.text...), a.log...))
	return err
}

func readAnswer(r io.Reader, limit int) (a answer, err error) {
	var head [9]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return answer{}, err
	}
	text, log := binary.LittleEndian.Uint32(head[1:]), binary.LittleEndian.Uint32(head[5:])
	if head[0] > answerError || int64(text) > int64(limit) || log > maxLogBytes {
		return answer{}, fmt.Errorf("an answer of kind %d with %d bytes and a log of %d, at most %d and %d are taken", head[0], text, log, limit, maxLogBytes)
	}
	all := make([]byte, text+log)
	_, err = io.ReadFull(r, all)
	return answer{head[0], all[:text:text], all[text:]}, err
}

package script

import (
	"encoding/binary"
	"fmt"
	"io"
)

// A request is: timeout in milliseconds, length of the source, length of the value, each uint32 little-endian, then both. An answer
// is: one byte, length uint32, text. The bytes are those of the constants below.
const (
	answerValue   = 0
	answerNothing = 1
	answerError   = 2
)

// maxFrameBytes bounds one part of a frame.
const maxFrameBytes = 64 << 20

type request struct {
	timeoutMillis uint32
	source, value []byte
}

func writeRequest(w io.Writer, r request) error {
	head := make([]byte, 12, 12+len(r.source)+len(r.value))
	binary.LittleEndian.PutUint32(head, r.timeoutMillis)
	binary.LittleEndian.PutUint32(head[4:], uint32(len(r.source)))
	binary.LittleEndian.PutUint32(head[8:], uint32(len(r.value)))
	_, err := w.Write(append(append(head, r.source...), r.value...))
	return err
}

func readRequest(r io.Reader) (request, error) {
	var head [12]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return request{}, err
	}
	source, value := binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[8:])
	if source > maxFrameBytes || value > maxFrameBytes {
		return request{}, fmt.Errorf("a request of %d and %d bytes, at most %d are taken", source, value, maxFrameBytes)
	}
	both := make([]byte, source+value)
	if _, err := io.ReadFull(r, both); err != nil {
		return request{}, err
	}
	return request{binary.LittleEndian.Uint32(head[:]), both[:source:source], both[source:]}, nil
}

func writeAnswer(w io.Writer, kind byte, text []byte) error {
	head := make([]byte, 5, 5+len(text))
	head[0] = kind
	binary.LittleEndian.PutUint32(head[1:], uint32(len(text)))
	_, err := w.Write(append(head, text...))
	return err
}

func readAnswer(r io.Reader, limit int) (kind byte, text []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint32(head[1:])
	if head[0] > answerError || int64(n) > int64(limit) {
		return 0, nil, fmt.Errorf("an answer of kind %d with %d bytes, at most %d are taken", head[0], n, limit)
	}
	text = make([]byte, n)
	_, err = io.ReadFull(r, text)
	return head[0], text, err
}

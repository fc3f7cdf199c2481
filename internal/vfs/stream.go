package vfs

import (
	"errors"
	"io"
	"sync"
)

// streamBytes is one read of a Stream, which holds two.
const streamBytes = 1 << 20

// Stream reads a file once from its start, in large pieces, the next one while the one before is used. Close it before the file. It is an io.ReadCloser
// for one goroutine.
type Stream struct {
	file     io.ReaderAt
	at, size int64
	buf      []byte
	pieces   chan streamPiece
	reading  sync.WaitGroup
	err      error
}

type streamPiece struct {
	b   []byte
	err error
}

// NewStream reads the first sizeBytes bytes of a file.
func NewStream(file io.ReaderAt, sizeBytes int64) *Stream {
	s := &Stream{file: file, size: sizeBytes, pieces: make(chan streamPiece, 1)}
	s.ask()
	return s
}

// ask begins to read the next piece.
func (s *Stream) ask() {
	from, to := s.at, min(s.at+streamBytes, s.size)
	s.at = to
	if from == to {
		s.pieces <- streamPiece{err: io.EOF}
		return
	}
	s.reading.Go(func() {
		start, b, err := ReadBlocks(s.file, from, to)
		if err == nil {
			b = b[from-start : to-start]
		}
		if errors.Is(err, io.EOF) { // it is shorter than was said
			err = io.ErrUnexpectedEOF
		}
		s.pieces <- streamPiece{b, err}
	})
}

// Read gives the next bytes.
func (s *Stream) Read(p []byte) (int, error) {
	if len(s.buf) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		piece := <-s.pieces
		if s.buf, s.err = piece.b, piece.err; s.err != nil {
			return 0, s.err
		}
		s.ask()
	}
	n := copy(p, s.buf)
	s.buf = s.buf[n:]
	return n, nil
}

// Close waits for the read that is under way.
func (s *Stream) Close() error {
	s.reading.Wait()
	return nil
}

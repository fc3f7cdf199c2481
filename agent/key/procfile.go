package key

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// maxProcBytes bounds what is read of one kernel file; the largest, /proc/diskstats or /proc/net/tcp of a busy
// machine, stay below it.
const maxProcBytes = 8 << 20

// procFile is a kernel file that stays open, because opening costs more than reading. The buffer is used again.
type procFile struct {
	path string
	file *os.File
	buf  []byte
}

// read returns the whole file as it is now. The bytes are valid until the next read.
func (p *procFile) read() ([]byte, error) {
	if p.file == nil {
		f, err := os.Open(p.path)
		if err != nil {
			return nil, readError(p.path, err)
		}
		p.file = f
	}
	if p.buf == nil {
		p.buf = make([]byte, 8<<10)
	}
	length := 0
	for {
		n, err := p.file.ReadAt(p.buf[length:], int64(length))
		length += n
		if errors.Is(err, io.EOF) {
			return p.buf[:length], nil
		}
		if err != nil {
			p.close() // A device or namespace may have gone; the next read opens the file again.
			return nil, readError(p.path, err)
		}
		if len(p.buf) >= maxProcBytes {
			return nil, reasonf("Cannot read %s: it is longer than %d bytes.", p.path, maxProcBytes)
		}
		p.buf = append(p.buf, make([]byte, len(p.buf))...)
	}
}

func (p *procFile) close() {
	if p.file != nil {
		p.file.Close() // Opened for reading: nothing can be lost.
		p.file = nil
	}
}

func readError(path string, err error) error {
	return reasonf("Cannot read %s: %w", path, numbered(err))
}

// numberedError is an error of the system as C programs print it: "[2] No such file or directory".
type numberedError struct{ cause error }

// Error returns the number and the text, or the text alone where there is no number.
func (e numberedError) Error() string {
	var number syscall.Errno
	if !errors.As(e.cause, &number) {
		return e.cause.Error()
	}
	text := number.Error()
	return "[" + strconv.Itoa(int(number)) + "] " + strings.ToUpper(text[:1]) + text[1:]
}

// Unwrap returns the error itself.
func (e numberedError) Unwrap() error { return e.cause }

func numbered(err error) error { return numberedError{err} }

// cutLine returns the first line of b without its end, and the rest.
func cutLine(b []byte) (line, rest []byte) {
	for i, c := range b {
		if c == '\n' {
			return b[:i], b[i+1:]
		}
	}
	return b, nil
}

// cutField returns the first field of b, separated by blanks, and the rest.
func cutField(b []byte) (field, rest []byte) {
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	start := i
	for i < len(b) && b[i] != ' ' && b[i] != '\t' {
		i++
	}
	return b[start:i], b[i:]
}

// cutUint returns the first field of b as a decimal number, and the rest; ok is false for anything else and for more
// than 64 bits.
func cutUint(b []byte) (v uint64, rest []byte, ok bool) {
	field, rest := cutField(b)
	v, ok = parseUint(field)
	return v, rest, ok
}

func parseUint(b []byte) (v uint64, ok bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		next := v*10 + uint64(c-'0')
		if v > (1<<64-1)/10 || next < v {
			return 0, false
		}
		v = next
	}
	return v, true
}

// parseFixed reads a plain decimal such as 0.52; signs and exponents are refused.
func parseFixed(b []byte) (float64, bool) {
	whole, scale := uint64(0), 1.0
	digits, point := 0, false
	for _, c := range b {
		if c == '.' && !point {
			point = true
			continue
		}
		if c < '0' || c > '9' || digits >= 17 {
			return 0, false
		}
		whole = whole*10 + uint64(c-'0')
		digits++
		if point {
			scale *= 10
		}
	}
	return float64(whole) / scale, digits > 0
}

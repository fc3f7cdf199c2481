package httpagent

import (
	"bytes"
	"strconv"
)

// frame finds the end of an answer to GET (RFC 9112, 6.3) in bytes that come bit by bit. It decides nothing else: whatever is not plainly whole
// is odd, and left to net/http.
type frame struct {
	// follows says that redirects are followed.
	follows bool
	// keep says that the connection stays open.
	keep bool

	// head is the length of the status line and the headers, 0 until they are there; looked is how far they were looked for.
	head, looked int
	// size is the length of the body, or one of the negative ones.
	size int
	// chunk is where the next chunk begins, count how many there were.
	chunk, count int
	// status is that of the answer, kind where the value of its Content-Type stands, empty for none or several.
	status int
	kind   [2]int
	// unusual says that a header is not of visible ASCII, or comes twice where one was expected: what is made of it is left to net/http.
	unusual bool
}

const (
	toTheEnd = -1
	inChunks = -2
)

// progress is how much of an answer is there.
type progress uint8

const (
	partly progress = iota
	all
	odd
)

// whole returns the length of the answer when all of it is there.
func (f *frame) whole(got []byte, ended bool) (int, progress) {
	if len(got) > maxPlainBytes {
		return 0, odd
	}
	if f.head == 0 {
		at := bytes.Index(got[f.looked:], []byte("\r\n\r\n"))
		if at < 0 {
			if bytes.Contains(got[f.looked:], []byte("\n\n")) || bytes.Contains(got[f.looked:], []byte("\n\r\n")) {
				return 0, odd // Lines that end with LF alone.
			}
			f.looked = max(0, len(got)-3)
			return 0, wait(ended)
		}
		f.head = f.looked + at + 4
		if !f.read(got[:f.head-2]) {
			return 0, odd
		}
		f.chunk = f.head
	}
	switch f.size {
	case toTheEnd:
		if ended {
			return len(got), all
		}
		return 0, partly
	case inChunks:
		return f.chunks(got, ended)
	}
	if len(got)-f.head >= f.size {
		return f.head + f.size, all
	}
	return 0, wait(ended)
}

func wait(ended bool) progress {
	if ended {
		return odd
	}
	return partly
}

// read reads what the headers say of the end; false when it is odd. Each line ends with CRLF.
func (f *frame) read(head []byte) bool {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[7] != '0' && line[7] != '1' || line[8] != ' ' || len(line) > 12 && line[12] != ' ' || bytes.ContainsAny(line, "\r\n") {
		return false
	}
	status, err := strconv.ParseUint(string(line[9:12]), 10, 16)
	if err != nil || status < 200 || f.follows && status >= 300 && status < 400 && status != 304 {
		return false
	}
	f.size, f.keep, f.status = toTheEnd, line[7] == '1', int(status)
	seen := false
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t\r\n") || bytes.ContainsAny(line, "\r\n") {
			return false
		}
		value = bytes.Trim(value, " \t")
		f.unusual = f.unusual || !isUsual(name, value)
		switch {
		case is(name, "Content-Length"):
			size, err := strconv.ParseUint(string(value), 10, 31)
			if err != nil || seen || size > maxPlainBytes {
				return false
			}
			f.size, seen = int(size), true
		case is(name, "Transfer-Encoding"):
			if seen || !is(value, "chunked") || !f.keep {
				return false
			}
			f.size, seen = inChunks, true
		case is(name, "Connection"):
			if !is(value, "close") && !is(value, "keep-alive") {
				return false
			}
			f.keep = f.keep && is(value, "keep-alive")
		case is(name, "Content-Type"):
			if len(value) == 0 || f.kind[1] > 0 {
				f.unusual = true
				continue
			}
			at := cap(head) - cap(value) // where it stands
			f.kind = [2]int{at, at + len(value)}
		case is(name, "Content-Encoding"), is(name, "Trailer"), is(name, "Upgrade"):
			return false
		}
	}
	if status == 204 || status == 304 {
		f.size = 0
	}
	return true
}

// isUsual reports whether a header is one that every reader takes as it stands (RFC 9110, 5.6.2 and 5.5, without what is obsolete).
func isUsual(name, value []byte) bool {
	for _, c := range name {
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '_' {
			return false
		}
	}
	for _, c := range value {
		if c < ' ' && c != '\t' || c > '~' {
			return false
		}
	}
	return true
}

func is(b []byte, text string) bool { return bytes.EqualFold(b, []byte(text)) }

// chunks finds the end of a body in chunks. Trailers are odd.
func (f *frame) chunks(got []byte, ended bool) (int, progress) {
	for {
		line, _, ok := bytes.Cut(got[f.chunk:], []byte("\r\n"))
		if !ok {
			if len(line) > 64 {
				return 0, odd
			}
			return 0, wait(ended)
		}
		size, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil {
			return 0, odd
		}
		end := f.chunk + len(line) + 2 + int(size) + 2
		if end > len(got) {
			return 0, wait(ended)
		}
		if string(got[end-2:end]) != "\r\n" {
			return 0, odd
		}
		f.count++
		if f.chunk = end; size == 0 {
			return end, all
		}
	}
}

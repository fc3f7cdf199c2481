package zbx

import (
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/klauspost/compress/zlib"
)

const (
	magic            = "ZBXD"
	headerBytes      = 13
	largeHeaderBytes = 21
	// firstReadBytes is what a body may take before any of it has arrived; from there on room doubles.
	firstReadBytes = 64 << 10
	// freeInflateBytes may come out of a body of any length; above it a body may grow maxInflateRatio times. Real
	// requests compress three to thirty times; zlib itself ends near 1,030.
	freeInflateBytes = 1 << 20
	maxInflateRatio  = 256
	// keepBytes is the largest buffer that a FrameReader keeps for its next frame.
	keepBytes = 1 << 20
)

// Header is the head of a frame.
type Header struct {
	Flags byte
	// BodyBytes is the length of the body as sent.
	BodyBytes uint64
	// InflatedBytes is the length of the body after inflating; meaningful with FlagCompressed.
	InflatedBytes uint64
}

// Compressed reports whether the body is sent compressed.
func (h Header) Compressed() bool { return h.Flags&FlagCompressed != 0 }

// DecodeHeader reads a header from the start of b and returns its length, 13 or 21. While b is a correct beginning but
// too short it returns io.ErrUnexpectedEOF; for anything else that is no header a *FrameError.
func DecodeHeader(b []byte) (Header, int, error) {
	n := min(len(b), len(magic))
	if string(b[:n]) != magic[:n] {
		return Header{}, 0, frameErrorf(ReasonMagic, "starts with %q, expected %q", b[:n], magic)
	}
	if len(b) <= len(magic) {
		return Header{}, 0, io.ErrUnexpectedEOF
	}
	h := Header{Flags: b[4]}
	if h.Flags&FlagProtocol == 0 || h.Flags&^(FlagProtocol|FlagCompressed|FlagLarge) != 0 {
		return Header{}, 0, frameErrorf(ReasonFlags, "flags are %#02x, expected 0x01 with 0x02 or 0x04", h.Flags)
	}
	if h.Flags&FlagLarge != 0 {
		if len(b) < largeHeaderBytes {
			return Header{}, 0, io.ErrUnexpectedEOF
		}
		h.BodyBytes = binary.LittleEndian.Uint64(b[5:])
		h.InflatedBytes = binary.LittleEndian.Uint64(b[13:])
		return h, largeHeaderBytes, nil
	}
	if len(b) < headerBytes {
		return Header{}, 0, io.ErrUnexpectedEOF
	}
	h.BodyBytes = uint64(binary.LittleEndian.Uint32(b[5:]))
	h.InflatedBytes = uint64(binary.LittleEndian.Uint32(b[9:]))
	return h, headerBytes, nil
}

// AppendHeader appends the header of a frame to dst. It adds FlagProtocol, and FlagLarge when a length needs it.
func AppendHeader(dst []byte, h Header) []byte {
	if h.BodyBytes > math.MaxUint32 || h.InflatedBytes > math.MaxUint32 {
		h.Flags |= FlagLarge
	}
	dst = append(dst, magic...)
	dst = append(dst, h.Flags|FlagProtocol)
	if h.Flags&FlagLarge != 0 {
		dst = binary.LittleEndian.AppendUint64(dst, h.BodyBytes)
		return binary.LittleEndian.AppendUint64(dst, h.InflatedBytes)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(h.BodyBytes))
	return binary.LittleEndian.AppendUint32(dst, uint32(h.InflatedBytes))
}

// AppendFrame appends a plain frame with this body to dst.
func AppendFrame(dst, body []byte) []byte {
	dst = AppendHeader(dst, Header{BodyBytes: uint64(len(body))})
	return append(dst, body...)
}

// FrameWriter makes compressed frames and reuses its compressor. It is for one goroutine at a time; the zero value is
// ready.
type FrameWriter struct {
	zip *zlib.Writer
	out sliceWriter
}

type sliceWriter struct{ b []byte }

func (w *sliceWriter) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	return len(p), nil
}

// AppendCompressed appends a zlib-compressed frame with this body to dst.
func (w *FrameWriter) AppendCompressed(dst, body []byte) []byte {
	w.out.b = w.out.b[:0]
	if w.zip == nil {
		w.zip = zlib.NewWriter(&w.out)
	} else {
		w.zip.Reset(&w.out)
	}
	// Writing to memory cannot fail.
	_, _ = w.zip.Write(body)
	_ = w.zip.Close()
	h := Header{Flags: FlagCompressed, BodyBytes: uint64(len(w.out.b)), InflatedBytes: uint64(len(body))}
	return append(AppendHeader(dst, h), w.out.b...)
}

// FrameReader reads frames and reuses its buffers. It is for one goroutine at a time; the zero value is ready. A body
// takes memory only as its bytes arrive, whatever length the header claims.
type FrameReader struct {
	// MaxBodyBytes bounds a body as sent; zero is DefaultMaxBodyBytes.
	MaxBodyBytes int
	// MaxInflatedBytes bounds a body after inflating; zero is DefaultMaxBodyBytes.
	MaxInflatedBytes int
	// Reserve, if set, is asked before the reader takes n more bytes of memory for the frame at hand. Its error ends
	// the read and is returned as it is.
	Reserve func(n int) error

	head     [largeHeaderBytes]byte
	body     []byte
	inflated []byte
	unzip    io.ReadCloser
	source   sliceReader
}

type sliceReader struct{ b []byte }

func (r *sliceReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b)
	r.b = r.b[n:]
	return n, nil
}

// ReadByte makes the inflater read no further than it must.
func (r *sliceReader) ReadByte() (byte, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c, nil
}

// Read reads one frame and returns its header and its inflated body, which is valid and may be changed until the next
// call. Bytes that are no acceptable frame are a *FrameError; an error of src is returned as it is, io.EOF before the first
// byte too, except that an end in the middle is a *FrameError.
func (fr *FrameReader) Read(src io.Reader) (Header, []byte, error) {
	fr.shrink()
	h, err := fr.readHeader(src)
	if err != nil {
		return h, nil, err
	}
	if fr.body, err = fr.readExactly(src, fr.body, int(h.BodyBytes), 0); err != nil {
		return h, nil, truncated(err, "body", h.BodyBytes)
	}
	if !h.Compressed() {
		return h, fr.body, nil
	}
	body, err := fr.inflate(h)
	return h, body, err
}

func (fr *FrameReader) readHeader(src io.Reader) (Header, error) {
	have := 0
	for _, want := range [...]int{headerBytes, largeHeaderBytes} {
		n, err := io.ReadFull(src, fr.head[have:want])
		have += n
		if err == io.EOF && have == 0 {
			return Header{}, io.EOF
		}
		if err != nil {
			if _, _, bad := DecodeHeader(fr.head[:have]); have > 0 && bad != io.ErrUnexpectedEOF {
				return Header{}, bad
			}
			return Header{}, truncated(err, "header", uint64(want))
		}
		h, _, err := DecodeHeader(fr.head[:have])
		if err == io.ErrUnexpectedEOF {
			continue
		}
		if err != nil {
			return h, err
		}
		return h, fr.check(h)
	}
	return Header{}, frameErrorf(ReasonTruncated, "header is incomplete")
}

func truncated(err error, what string, want uint64) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return frameErrorf(ReasonTruncated, "%s ends early, expected %d bytes", what, want)
	}
	return err
}

// check applies the limits to what a header claims.
func (fr *FrameReader) check(h Header) error {
	if limit := limitOr(fr.MaxBodyBytes); h.BodyBytes > uint64(limit) {
		return frameErrorf(ReasonTooLarge, "body of %d bytes, expected at most %d", h.BodyBytes, limit)
	}
	if !h.Compressed() {
		return nil
	}
	if limit := limitOr(fr.MaxInflatedBytes); h.InflatedBytes > uint64(limit) {
		return frameErrorf(ReasonTooLarge, "body of %d bytes after inflating, expected at most %d", h.InflatedBytes, limit)
	}
	if h.InflatedBytes > freeInflateBytes && h.InflatedBytes/maxInflateRatio > h.BodyBytes {
		return frameErrorf(ReasonTooLarge, "body of %d bytes inflates to %d, expected at most %d times", h.BodyBytes, h.InflatedBytes, maxInflateRatio)
	}
	return nil
}

func limitOr(n int) int {
	if n <= 0 {
		return DefaultMaxBodyBytes
	}
	return n
}

// readExactly reads n bytes of src behind the first have bytes of buf, whose room grows with what arrives.
func (fr *FrameReader) readExactly(src io.Reader, buf []byte, n, have int) ([]byte, error) {
	buf = buf[:have]
	for len(buf) < n {
		room := min(n, max(firstReadBytes, 2*len(buf)))
		if err := fr.reserve(room - len(buf)); err != nil {
			return buf, err
		}
		if cap(buf) < room {
			grown := make([]byte, len(buf), room)
			copy(grown, buf)
			buf = grown
		}
		m, err := io.ReadFull(src, buf[len(buf):room])
		buf = buf[:len(buf)+m]
		if err != nil {
			return buf, err
		}
	}
	return buf, nil
}

func (fr *FrameReader) reserve(n int) error {
	if fr.Reserve == nil {
		return nil
	}
	return fr.Reserve(n)
}

func (fr *FrameReader) inflate(h Header) ([]byte, error) {
	fr.source.b = fr.body
	var err error
	if fr.unzip == nil {
		fr.unzip, err = zlib.NewReader(&fr.source)
	} else {
		err = fr.unzip.(zlib.Resetter).Reset(&fr.source, nil)
	}
	if err != nil {
		return nil, frameErrorf(ReasonZlib, "compressed body: %v", err)
	}
	fr.inflated, err = fr.readExactly(fr.unzip, fr.inflated, int(h.InflatedBytes), 0)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, frameErrorf(ReasonZlib, "compressed body inflates to %d bytes, header says %d", len(fr.inflated), h.InflatedBytes)
	}
	if err != nil {
		return nil, inflateError(err)
	}
	var more [1]byte
	if n, err := fr.unzip.Read(more[:]); n != 0 {
		return nil, frameErrorf(ReasonZlib, "compressed body inflates to more than the %d bytes of its header", h.InflatedBytes)
	} else if err != io.EOF {
		return nil, inflateError(err)
	}
	return fr.inflated, nil
}

// inflateError keeps the error of Reserve and names one of the inflater.
func inflateError(err error) error {
	var reserved *ReserveError
	if errors.As(err, &reserved) {
		return err
	}
	return frameErrorf(ReasonZlib, "compressed body: %v", err)
}

// ReserveError is what a Reserve function returns when there is no memory for a frame.
type ReserveError struct{ Bytes int }

// Error says how much memory was asked for.
func (e *ReserveError) Error() string {
	return "frame: too many requests at once, no room for more of this one"
}

// shrink lets go of buffers that one large frame has left.
func (fr *FrameReader) shrink() {
	if cap(fr.body) > keepBytes {
		fr.body = nil
	}
	if cap(fr.inflated) > keepBytes {
		fr.inflated = nil
	}
}

// Shrink lets go of buffers larger than 1 MiB; for pools, which should not keep what one large frame has left.
func (fr *FrameReader) Shrink() { fr.shrink() }

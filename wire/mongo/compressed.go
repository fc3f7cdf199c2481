package mongo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// The compressors of OP_COMPRESSED.
const (
	compressorNone   = 0
	compressorSnappy = 1
	compressorZlib   = 2
	compressorZstd   = 3
	maxCompressor    = compressorZstd
)

// Inflater unpacks the start of compressed bodies. It belongs to one goroutine.
type Inflater struct {
	// Limit is how many bytes of a body are unpacked at most, whatever the message declares.
	Limit  int
	out    []byte
	used   int // bytes of out that may hold something
	zlib   io.ReadCloser
	reader bytes.Reader
	zstd   *zstd.Decoder
}

// ErrCompressor says that a message uses a compressor that does not exist.
var ErrCompressor = errors.New("mongo: unknown compressor")

// NewInflater returns an inflater that unpacks at most limitBytes of each body, whatever the message declares.
func NewInflater(limitBytes int) (*Inflater, error) {
	if limitBytes <= 0 {
		return nil, fmt.Errorf("mongo: unpack at most %d bytes: expected more than 0", limitBytes)
	}
	return &Inflater{Limit: limitBytes}, nil
}

// zstdReader makes the reader when the first message needs it; most servers never do.
func (f *Inflater) zstdReader() (*zstd.Decoder, error) {
	if f.zstd == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxMessageBytes), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			return nil, fmt.Errorf("mongo: %w", err)
		}
		f.zstd = d
	}
	return f.zstd, nil
}

// Inflate reads the body of OP_COMPRESSED at the start of b, which begins behind the message header h and may be cut. It returns the
// header of the plain message and the start of its body, valid until the next call.
func (f *Inflater) Inflate(h Header, b []byte) (Header, []byte, error) {
	if len(b) < CompressedBytes {
		return h, nil, ErrShort
	}
	inner := Op(binary.LittleEndian.Uint32(b))
	size := int(binary.LittleEndian.Uint32(b[4:]))
	compressor := b[8]
	if !inner.Known() || inner == OpCompressed || size > MaxMessageBytes-HeaderBytes {
		return h, nil, ErrMalformed
	}
	whole := HeaderBytes+len(b) >= h.Length
	plain := Header{Length: HeaderBytes + size, RequestID: h.RequestID, ResponseTo: h.ResponseTo, Op: inner}
	body, err := f.unpack(compressor, b[CompressedBytes:], min(size, f.Limit), whole)
	if err != nil {
		return plain, nil, err
	}
	if whole && len(body) < min(size, f.Limit) {
		return plain, nil, fmt.Errorf("%w: %d bytes unpacked, %d declared", ErrMalformed, len(body), size)
	}
	return plain, body[:min(len(body), size)], nil
}

// unpack inflates up to most bytes. Of a cut input it gives what can be had.
func (f *Inflater) unpack(compressor byte, packed []byte, most int, whole bool) ([]byte, error) {
	if cap(f.out) < most {
		f.Wipe()
		f.out = make([]byte, most)
	}
	f.used = max(f.used, most)
	switch compressor {
	case compressorNone:
		return packed[:min(len(packed), most)], nil
	case compressorSnappy:
		return snappy(packed, f.out[:most], whole)
	case compressorZlib:
		f.reader.Reset(packed)
		if f.zlib == nil {
			z, err := zlib.NewReader(&f.reader)
			if err != nil {
				return nil, startError(err, whole)
			}
			f.zlib = z
		} else if err := f.zlib.(zlib.Resetter).Reset(&f.reader, nil); err != nil {
			return nil, startError(err, whole)
		}
		return readUpTo(f.zlib, f.out[:most], whole)
	case compressorZstd:
		d, err := f.zstdReader()
		if err != nil {
			return nil, err
		}
		f.reader.Reset(packed)
		if err := d.Reset(&f.reader); err != nil {
			return nil, ErrMalformed
		}
		return readUpTo(d, f.out[:most], whole)
	}
	return nil, ErrCompressor
}

// startError tells a compressed start that is cut off from one that cannot be.
func startError(err error, whole bool) error {
	if !whole && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		return ErrShort
	}
	return ErrMalformed
}

// readUpTo fills out; of a cut input it returns what came.
func readUpTo(r io.Reader, out []byte, whole bool) ([]byte, error) {
	n, err := io.ReadFull(r, out)
	if err == nil {
		return out, nil
	}
	if whole {
		return nil, ErrMalformed
	}
	if n == 0 {
		return nil, ErrShort
	}
	return out[:n], nil
}

// Wipe overwrites what was unpacked, so that no values stay in memory.
func (f *Inflater) Wipe() {
	if f.used == 0 {
		return
	}
	clear(f.out[:min(f.used, cap(f.out))])
	f.used = 0
}

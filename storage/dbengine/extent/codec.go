package extent

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// encoders are idle Zstandard encoders by their speed class; decoders are idle decoders.
var (
	encoders [zstd.SpeedBestCompression + 1]sync.Pool
	decoders sync.Pool
)

// compress replaces dst[body:] by its compressed form if that saves at least a thirty-second, and returns the codec
// that was used.
func compress(dst []byte, body int, codec Codec, level int) ([]byte, Codec, error) {
	plain := dst[body:]
	var packed []byte
	switch codec {
	case LZ4:
		packed = make([]byte, lz4.CompressBlockBound(len(plain)))
		n, err := lz4.CompressBlock(plain, packed, nil)
		if err != nil {
			return dst, None, fmt.Errorf("%w: lz4: %w", ErrPages, err)
		}
		packed = packed[:n]
	case Zstd:
		if level < 1 || level > 22 {
			return dst, None, fmt.Errorf("%w: zstd level %d, expected 1 to 22", ErrPages, level)
		}
		speed := zstd.EncoderLevelFromZstd(level)
		e, ok := encoders[speed].Get().(*zstd.Encoder)
		if !ok {
			var err error
			e, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(speed), zstd.WithEncoderConcurrency(1),
				zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
			if err != nil {
				return dst, None, fmt.Errorf("%w: zstd: %w", ErrPages, err)
			}
		}
		packed = e.EncodeAll(plain, nil)
		encoders[speed].Put(e)
	}
	if len(packed) == 0 || len(packed) > len(plain)-len(plain)/32 {
		return dst, None, nil
	}
	return append(dst[:body], packed...), codec, nil
}

// inflate returns the payload of size bytes that stored holds.
func inflate(codec Codec, stored []byte, size int) ([]byte, error) {
	switch codec {
	case LZ4:
		if size > 255*len(stored) {
			return nil, fmt.Errorf("lz4: %d bytes cannot hold %d", len(stored), size)
		}
		plain := make([]byte, size)
		n, err := lz4.UncompressBlock(stored, plain)
		if err != nil {
			return nil, fmt.Errorf("lz4: %w", err)
		}
		if n != size {
			return nil, fmt.Errorf("lz4: %d bytes, expected %d", n, size)
		}
		return plain, nil
	case Zstd:
		return inflateZstd(stored, size)
	}
	return stored, nil
}

// inflateZstd reads one Zstandard frame whose content must have size bytes.
func inflateZstd(stored []byte, size int) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(stored); err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	if !h.HasFCS || h.FrameContentSize != uint64(size) {
		return nil, fmt.Errorf("zstd: a frame of %d bytes, expected %d", h.FrameContentSize, size)
	}
	d, ok := decoders.Get().(*zstd.Decoder)
	if !ok {
		var err error
		d, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*MaxBytes))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
	}
	plain, err := d.DecodeAll(stored, make([]byte, 0, size))
	decoders.Put(d)
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	if len(plain) != size {
		return nil, fmt.Errorf("zstd: %d bytes, expected %d", len(plain), size)
	}
	return plain, nil
}

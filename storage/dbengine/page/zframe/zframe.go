// Package zframe writes and reads single Zstandard frames (RFC 8878) that state the size of their content.
package zframe

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// MaxBytes bounds the content of a frame.
	MaxBytes = 1 << 30
	// maxRatio bounds how much longer than its frame a content may be: a block of at most 128 KiB takes 4 bytes at least.
	maxRatio = 128 << 10 / 4
)

// encoders are idle encoders by their speed class; decoders are idle decoders.
var (
	encoders [zstd.SpeedBestCompression + 1]sync.Pool
	decoders sync.Pool
)

// Append appends a frame with the content plain to dst. level is Zstandard's, 1 to 22.
func Append(dst, plain []byte, level int) ([]byte, error) {
	if level < 1 || level > 22 {
		return dst, fmt.Errorf("zstd level %d, expected 1 to 22", level)
	}
	if len(plain) > MaxBytes {
		return dst, fmt.Errorf("zstd content of %d bytes, expected at most %d", len(plain), MaxBytes)
	}
	speed := zstd.EncoderLevelFromZstd(level)
	e, ok := encoders[speed].Get().(*zstd.Encoder)
	if !ok {
		var err error
		e, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(speed), zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true), zstd.WithLowerEncoderMem(true))
		if err != nil {
			return dst, fmt.Errorf("zstd: %w", err)
		}
	}
	dst = e.EncodeAll(plain, dst)
	encoders[speed].Put(e)
	return dst, nil
}

// Read appends the content of frame, which must have size bytes, to dst. Nothing is allocated for a frame that
// declares another size. On an error dst is returned as it was.
func Read(dst, frame []byte, size int) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(frame); err != nil {
		return dst, fmt.Errorf("zstd: %w", err)
	}
	if h.Skippable || !h.HasFCS || h.FrameContentSize != uint64(size) || size > MaxBytes || size/maxRatio > len(frame) {
		return dst, fmt.Errorf("zstd: a frame of %d bytes with %d bytes of content, expected %d", len(frame), h.FrameContentSize, size)
	}
	d, ok := decoders.Get().(*zstd.Decoder)
	if !ok {
		var err error
		d, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxBytes), zstd.WithDecoderLowmem(true))
		if err != nil {
			return dst, fmt.Errorf("zstd: %w", err)
		}
	}
	defer decoders.Put(d)
	mark := len(dst)
	room := dst
	if cap(room)-mark < size {
		room = make([]byte, mark, mark+size)
		copy(room, dst)
	}
	plain, err := d.DecodeAll(frame, room)
	if err != nil {
		return dst, fmt.Errorf("zstd: %w", err)
	}
	if len(plain)-mark != size {
		return dst, fmt.Errorf("zstd: %d bytes of content, expected %d", len(plain)-mark, size)
	}
	return plain, nil
}

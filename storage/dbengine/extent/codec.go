package extent

import (
	"fmt"

	"github.com/pierrec/lz4/v4"

	"tidemark/storage/dbengine/page/zframe"
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
		var err error
		if packed, err = zframe.Append(nil, plain, level); err != nil {
			return dst, None, fmt.Errorf("%w: %w", ErrPages, err)
		}
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
		return zframe.Read(nil, stored, size)
	}
	return stored, nil
}

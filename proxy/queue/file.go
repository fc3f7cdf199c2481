package queue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"

	"tidemark/internal/vfs"
	"tidemark/storage"
)

// A small file is a mark, a CRC-32C of the rest, and the rest. It is replaced as a whole.
const (
	fileMark        = "TDMPROX1"
	fileHeaderBytes = len(fileMark) + 4
	// maxFileBytes bounds what is read: 128 MiB and the header.
	maxFileBytes = 128<<20 + fileHeaderBytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// WriteFile replaces a file durably.
func WriteFile(fsys vfs.FS, path string, body []byte) error {
	part := path + ".part"
	if err := fsys.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := fsys.Create(part)
	if err != nil {
		return err
	}
	whole := append([]byte(fileMark), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(whole[len(fileMark):], crc32.Checksum(body, castagnoli))
	_, err = file.WriteAt(append(whole, body...), 0)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(part, path); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(path))
}

// ReadFile reads what WriteFile wrote. The error is fs.ErrNotExist when there is none, *storage.CorruptionError when it is damaged.
func ReadFile(fsys vfs.FS, path string) ([]byte, error) {
	file, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	damaged := func(want string) error { return &storage.CorruptionError{File: path, Want: want} }
	if size < int64(fileHeaderBytes) || size > int64(maxFileBytes) {
		return nil, damaged(fmt.Sprintf("expected %d to %d bytes", fileHeaderBytes, maxFileBytes))
	}
	whole := make([]byte, size)
	if n, err := file.ReadAt(whole, 0); n < len(whole) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	body := whole[fileHeaderBytes:]
	if string(whole[:len(fileMark)]) != fileMark || binary.LittleEndian.Uint32(whole[len(fileMark):]) != crc32.Checksum(body, castagnoli) {
		return nil, damaged("expected the right checksum")
	}
	return body, nil
}

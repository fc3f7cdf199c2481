package key

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
)

// stoppable is a reader that fails once ctx ended.
type stoppable struct {
	ctx context.Context //nolint:containedctx // A reader has no other way to be told.
	r   io.Reader
}

// Read reads unless ctx ended.
func (s stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}

// sumFile feeds a file within the bound to w.
func (m *Machine) sumFile(path string, w io.Writer) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(w, io.LimitReader(stoppable{m.ctx, f}, maxSumBytes+1))
	if err != nil {
		return readError(path, err)
	}
	if n > maxSumBytes {
		return reasonf("File is too large for this check: more than %d bytes.", maxSumBytes)
	}
	return nil
}

func compileFileMD5(m *Machine, k Key, c *Check) error {
	return compileFileDigest(m, k, c, md5.New)
}

func compileFileDigest(m *Machine, k Key, c *Check, newHash func() hash.Hash) error {
	path, err := filePath(k)
	if err != nil {
		return err
	}
	c.Slow = true
	c.text(func() (string, error) {
		h := newHash()
		err := m.sumFile(path, h)
		return hex.EncodeToString(h.Sum(nil)), err
	})
	return nil
}

// compileFileChecksum makes vfs.file.cksum[file,crc32|md5|sha256].
func compileFileChecksum(m *Machine, k Key, c *Check) error {
	switch k.Param(1, "crc32") {
	case "crc32":
		path, err := filePath(k)
		if err != nil {
			return err
		}
		c.Slow = true
		c.uint("", func() (uint64, error) {
			sum := &posixSum{}
			err := m.sumFile(path, sum)
			return uint64(sum.finish()), err
		})
		return nil
	case "md5":
		return compileFileDigest(m, k, c, md5.New)
	case "sha256":
		return compileFileDigest(m, k, c, sha256.New)
	}
	return errSecond
}

// posixSum is the checksum of the POSIX utility cksum: CRC-32 with the polynomial 0x04C11DB7, most significant bit
// first, over the bytes and their number.
type posixSum struct {
	crc    uint32
	length uint64
}

// posixTable has the remainders of all bytes.
var posixTable = func() (table [256]uint32) {
	for i := range table {
		crc := uint32(i) << 24
		for range 8 {
			if crc&(1<<31) != 0 {
				crc = crc<<1 ^ 0x04C11DB7
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()

// Write adds bytes; it never fails.
func (s *posixSum) Write(p []byte) (int, error) {
	crc := s.crc
	for _, b := range p {
		crc = crc<<8 ^ posixTable[byte(crc>>24)^b]
	}
	s.crc = crc
	s.length += uint64(len(p))
	return len(p), nil
}

func (s *posixSum) finish() uint32 {
	crc := s.crc
	for n := s.length; n > 0; n >>= 8 {
		crc = crc<<8 ^ posixTable[byte(crc>>24)^byte(n)]
	}
	return ^crc
}

package dbengine

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"log/slog"
	"strings"
	"sync"
)

// spy is a log handler that remembers.
type spy struct {
	mu    sync.Mutex
	lines []string
}

func (s *spy) Enabled(context.Context, slog.Level) bool { return true }

func (s *spy) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		b.WriteString(" " + a.String())
		return true
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, b.String())
	return nil
}

func (s *spy) WithAttrs([]slog.Attr) slog.Handler { return s }
func (s *spy) WithGroup(string) slog.Handler      { return s }

func (s *spy) said(part string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines {
		if strings.Contains(l, part) {
			return true
		}
	}
	return false
}

func checksumOf(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(nil, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

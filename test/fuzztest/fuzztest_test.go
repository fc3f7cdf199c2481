package fuzztest

import (
	"strings"
	"testing"
)

// recorder is a test that notes whether it failed.
type recorder struct {
	testing.TB
	failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, _ ...any) { r.failed = format }

func TestWithin(t *testing.T) {
	cheap := &recorder{TB: t}
	Within(cheap, 1<<20, func() {})
	if cheap.failed != "" {
		t.Errorf("nothing was done: %s", cheap.failed)
	}
	var kept []byte
	large := &recorder{TB: t}
	Within(large, 1<<20, func() { kept = make([]byte, 4<<20) })
	if !strings.Contains(large.failed, "at most 100 ms") || len(kept) == 0 {
		t.Error("4 MiB are within 1 MiB")
	}
	slow := &recorder{TB: t}
	Within(slow, 1<<20, func() {
		for start := cpuNanos(t); cpuNanos(t)-start < 2*mostNanos; {
		}
	})
	if slow.failed == "" {
		t.Error("200 ms are within 100")
	}
}

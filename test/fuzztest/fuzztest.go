// Package fuzztest bounds what one input of a fuzz test may cost.
package fuzztest

import (
	"math"
	"runtime/metrics"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	// mostNanos is the processor time that one input may take.
	mostNanos = 100e6
	// tries is how often it is tried, as a collection of garbage may fall into one.
	tries = 3
)

// Within fails the test when an input costs more than 100 ms of this process's time or mostBytes of allocations, each in the best of three tries. fn
// is called again for each, and nothing else may run in the process.
func Within(t testing.TB, mostBytes int64, fn func()) {
	t.Helper()
	nanos, bytes := int64(math.MaxInt64), int64(math.MaxInt64)
	for range tries {
		before, had := cpuNanos(t), allocated()
		fn()
		nanos, bytes = min(nanos, cpuNanos(t)-before), min(bytes, allocated()-had)
		if nanos <= mostNanos && bytes <= mostBytes {
			return
		}
	}
	t.Errorf("one input took %.1f ms and %d bytes of memory, at most 100 ms and %d bytes are permitted", float64(nanos)/1e6, bytes, mostBytes)
}

// cpuNanos is the processor time of the process, in nanoseconds.
func cpuNanos(t testing.TB) int64 {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &at); err != nil {
		t.Fatal(err)
	}
	return at.Nano()
}

// allocated is how many bytes the process has ever allocated.
func allocated() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

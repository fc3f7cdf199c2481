package page

import (
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// perValue runs fn in a benchmark's loop and reports the thread's CPU time for each of the values that one call treats: wall
// time says little on a shared machine.
func perValue(b *testing.B, values int, fn func()) {
	b.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var start, end unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &start); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		fn()
	}
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &end); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(end.Nano()-start.Nano())/float64(b.N)/float64(values), "cpu-ns/value")
}

// benchColumns encodes and decodes columns.
func benchColumns(b *testing.B, columns []traceColumn) {
	values := 0
	var encoded [][]byte
	for i := range columns {
		encoded = append(encoded, columns[i].append(nil))
		values += len(columns[i].v)
	}
	b.Run("encode", func(b *testing.B) {
		var buf []byte
		perValue(b, values, func() {
			for i := range columns {
				buf = columns[i].append(buf[:0])
			}
		})
	})
	b.Run("decode", func(b *testing.B) {
		var buf []uint64
		perValue(b, values, func() {
			for i := range columns {
				var err error
				if buf, err = columns[i].decode(buf[:0], encoded[i]); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}

func BenchmarkTrace(b *testing.B) {
	all := readTrace(b)
	for _, dense := range []bool{false, true} {
		var varying []traceColumn
		for i := range all {
			if all[i].dense = dense; all[i].varies() {
				varying = append(varying, all[i])
			}
		}
		b.Run(fmt.Sprintf("all/dense=%v", dense), func(b *testing.B) { benchColumns(b, all) })
		b.Run(fmt.Sprintf("varying/dense=%v", dense), func(b *testing.B) { benchColumns(b, varying) })
	}
}

func BenchmarkKinds(b *testing.B) {
	for k, kind := range kinds {
		for _, dense := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/dense=%v", kind.name, dense), func(b *testing.B) {
				benchColumns(b, []traceColumn{{float: kind.float, dense: dense, v: drawKind(k, 1024)}})
			})
		}
	}
}

package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"tidemark/storage/dbengine"
)

// figures are what one round says of one candidate.
type figures struct {
	// beforeBytes became bytes; they hold values.
	beforeBytes, bytes int64
	values             uint64
	// WriteCPU and WriteWall are milliseconds for a million values.
	WriteCPU, WriteWall float64
	// P50 and P99 are milliseconds with warm caches.
	P50, P99         float64
	ColdP50, ColdP99 float64
}

// measured is a candidate with its rounds. The store as it is has no codec.
type measured struct {
	codec       dbengine.Codec
	extentBytes int
	rounds      []figures
}

func (m *measured) name() string { return fmt.Sprintf("%s, %s", m.codec, sizeText(m.extentBytes)) }

// step measures one round of one candidate: with rewrite the pairs are written anew, else they stay as they are.
func (r *run) step(ctx context.Context, m *measured, round int, rewrite bool) (err error) {
	pairs := r.rounds[round]
	dir := filepath.Join(r.scratch, "engine")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fsys := newOverlay(dir, r.pins, pairs)
	f := figures{beforeBytes: sizeOf(pairs)}
	for i := range pairs {
		f.values += pairs[i].Values
	}
	what := fmt.Sprintf("round %d of %d, as it is", round+1, len(r.rounds))
	if rewrite {
		what = fmt.Sprintf("round %d of %d, %s", round+1, len(r.rounds), m.name())
		if err := r.rewrite(ctx, fsys, dir, m, &f, what); err != nil {
			return err
		}
	}
	after, err := dbengine.ClosedPairs(fsys, dir)
	if err != nil {
		return err
	}
	if len(after) != len(pairs) {
		return fmt.Errorf("%d file pairs of the sample became %d; run tidemark store check on the store", len(pairs), len(after))
	}
	f.bytes = sizeOf(after)
	if err := r.latencies(ctx, fsys, dir, r.queries[round], &f); err != nil {
		return err
	}
	m.rounds = append(m.rounds, f)
	if rewrite {
		r.done += f.beforeBytes
	}
	r.o.Progress(r.done, r.total, what)
	return ctx.Err()
}

// rewrite writes the pairs in the overlay anew.
func (r *run) rewrite(ctx context.Context, fsys *overlay, dir string, m *measured, f *figures, what string) (err error) {
	db, err := open(ctx, fsys, dir, f.beforeBytes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	cpu, began := cpuTime(), time.Now()
	p, err := db.Recompress(ctx, dbengine.Recompress{
		Codec: m.codec, ExtentBytes: m.extentBytes, OlderThan: -1 << 62, Again: true,
		Progress: func(p dbengine.RecompressProgress) {
			r.o.Progress(r.done+min(p.DoneBytes, f.beforeBytes), r.total, what)
		},
	})
	if err != nil {
		return err
	}
	if p.SkippedPairs > 0 {
		return fmt.Errorf("a file pair of the sample cannot be written anew: %s", p.Skipped)
	}
	million := float64(f.values) / 1e6
	f.WriteCPU = float64((cpuTime() - cpu).Microseconds()) / 1000 / million
	f.WriteWall = float64(time.Since(began).Microseconds()) / 1000 / million
	return nil
}

// cpuTime is the CPU time of the process. Unlike the wall clock it does not grow while other programs have the machine.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func sizeText(n int) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	if n%(1<<10) == 0 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

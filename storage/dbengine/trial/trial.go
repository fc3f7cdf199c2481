// Package trial measures what codecs would do for a store: it writes a fair sample of its closed file pairs anew with each candidate, in a
// scratch folder, and replays queries on the result.
//
//	DIR ─ open files (pins) ─▶ overlay ─▶ an engine in the scratch folder ─ Recompress ─▶ sizes, CPU
//	                                                       └─ queries, cold and warm ─▶ latencies
//
// The store is only read, and may be in use. Each round takes other pairs, so that the spread over the rounds tells what chance does, of the
// machine and of the sample alike. See docs/design/0036-codec-trial.md.
package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tidemark/internal/vfs"
	"tidemark/storage/dbengine"
)

const (
	// minRounds and maxRounds bound Options.Rounds.
	minRounds, maxRounds = 5, 100
	// maxCandidates bounds codecs times extents.
	maxCandidates = 64
	// maxRoundBytes bounds the sample of one round, and with it the scratch folder: what is written is not larger than what it is made of.
	maxRoundBytes = 1 << 30
	// spareBytes must be free on the scratch file system besides: the log of the engine there, and room for others.
	spareBytes = 192 << 20
	// cacheBytes is the page cache of the engine that is measured.
	cacheBytes = 64 << 20
	// scratchName is the scratch folder's name, scratchLock the file in it that a running trial has locked.
	scratchName, scratchLock = "tidemark-trial", "lock"
)

// Options say what to try. Zero values stand for what is said.
type Options struct {
	// Dir is the engine's folder.
	Dir string
	// Codecs and Extents are combined; none, lz4, zstd:1, zstd:3 and zstd:9, and 64 KiB.
	Codecs  []dbengine.Codec
	Extents []int
	// Queries are replayed; without any some are made up.
	Queries []Query
	// Sample is the part of the closed pairs that one round takes, above 0 to 1, at least one pair; 0.05.
	Sample float64
	// Rounds is how often everything is measured, 5 to 100; 5.
	Rounds int
	// Scratch is a folder for the scratch folder; the system's for temporary files.
	Scratch string
	// QuotaBytes is what the store may take; what it takes now.
	QuotaBytes int64
	// Progress, if not nil, is told how far it is: bytes to be written anew, of all candidates and rounds.
	Progress func(done, total int64, what string)
}

func (o *Options) setDefaults() error {
	if len(o.Codecs) == 0 {
		for _, text := range []string{"none", "lz4", "zstd:1", "zstd:3", "zstd:9"} {
			c, err := dbengine.ParseCodec(text)
			if err != nil {
				return err
			}
			o.Codecs = append(o.Codecs, c)
		}
	}
	if len(o.Extents) == 0 {
		o.Extents = []int{64 << 10}
	}
	if o.Sample == 0 {
		o.Sample = 0.05
	}
	if o.Rounds == 0 {
		o.Rounds = minRounds
	}
	if o.Scratch == "" {
		o.Scratch = os.TempDir()
	}
	if o.Progress == nil {
		o.Progress = func(int64, int64, string) {}
	}
	return o.check()
}

func (o *Options) check() error {
	if n := len(o.Codecs) * len(o.Extents); n > maxCandidates {
		return fmt.Errorf("%d combinations of codecs and extents; expected at most %d", n, maxCandidates)
	}
	if !(o.Sample > 0 && o.Sample <= 1) {
		return fmt.Errorf("a sample of %g; expected more than 0 and at most all", o.Sample)
	}
	if o.Rounds < minRounds || o.Rounds > maxRounds {
		return fmt.Errorf("%d rounds; expected %d to %d", o.Rounds, minRounds, maxRounds)
	}
	for _, n := range o.Extents {
		if n < dbengine.MinExtentBytes || n > dbengine.MaxExtentBytes {
			return fmt.Errorf("extents of %d bytes; expected %d to %d", n, dbengine.MinExtentBytes, dbengine.MaxExtentBytes)
		}
	}
	return nil
}

// run is one trial.
type run struct {
	o       Options
	store   store
	pins    pins
	scratch string
	rounds  [][]dbengine.ClosedPair
	// queries are those of each round.
	queries     [][]Query
	done, total int64
}

// Run tries the candidates. When it returns, for whatever reason, the scratch folder is gone; what a killed trial left is removed by the next.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	r := &run{o: o, pins: pins{}}
	defer func() { err = errors.Join(err, r.pins.close()) }()
	if err := r.choose(); err != nil {
		return nil, err
	}
	release, err := r.claim()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	for i := range r.rounds {
		queries, err := r.queriesOf(i)
		if err != nil {
			return nil, err
		}
		r.queries = append(r.queries, queries)
	}
	return r.measure(ctx)
}

// claim makes the scratch folder, empty, for this trial alone. release removes it.
func (r *run) claim() (release func() error, err error) {
	r.scratch = filepath.Join(r.o.Scratch, scratchName)
	if err := os.MkdirAll(r.scratch, 0o750); err != nil {
		return nil, fmt.Errorf("make the scratch folder: %w", err)
	}
	lock, err := (vfs.OS{}).Lock(filepath.Join(r.scratch, scratchLock))
	if err != nil {
		return nil, fmt.Errorf("another trial uses %s; wait for it, or name another folder with --scratch: %w", r.scratch, err)
	}
	release = func() error { return errors.Join(os.RemoveAll(r.scratch), lock.Close()) }
	entries, err := os.ReadDir(r.scratch)
	for _, e := range entries {
		if e.Name() != scratchLock {
			err = errors.Join(err, os.RemoveAll(filepath.Join(r.scratch, e.Name())))
		}
	}
	if err == nil {
		err = r.checkRoom()
	}
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}

// checkRoom reports whether the scratch file system has room for the largest round.
func (r *run) checkRoom() error {
	free, _, err := (vfs.OS{}).Free(r.scratch)
	if err != nil {
		return fmt.Errorf("look for free space in %s: %w", r.scratch, err)
	}
	most := int64(0)
	for _, pairs := range r.rounds {
		most = max(most, sizeOf(pairs))
	}
	if free < most+spareBytes {
		return fmt.Errorf("%s has %d bytes free, and a round takes up to %d; take a smaller --sample, or another folder with --scratch", r.scratch, free, most+spareBytes)
	}
	return nil
}

func sizeOf(pairs []dbengine.ClosedPair) int64 {
	n := int64(0)
	for i := range pairs {
		n += pairs[i].Bytes
	}
	return n
}

// measure measures all candidates, round by round, so that what disturbs the machine for a while disturbs all.
func (r *run) measure(ctx context.Context) (*Report, error) {
	now := &measured{}
	var all []*measured
	for _, codec := range r.o.Codecs {
		for _, size := range r.o.Extents {
			all = append(all, &measured{codec: codec, extentBytes: size})
		}
	}
	for _, pairs := range r.rounds {
		r.total += sizeOf(pairs) * int64(len(all)) // the store as it is takes no time to speak of, and would promise an early end
	}
	for round := range r.rounds {
		if err := r.step(ctx, now, round, false); err != nil {
			return nil, err
		}
		for i := range all { // another one first each time
			if err := r.step(ctx, all[(i+round)%len(all)], round, true); err != nil {
				return nil, err
			}
		}
	}
	return r.report(now, all), nil
}

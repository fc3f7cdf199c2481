package trial

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"tidemark/internal/vfs"
	"tidemark/storage/dbengine"
)

// store is what the trial knows of the whole store.
type store struct {
	pairs []dbengine.ClosedPair
	// closedBytes is the size of those pairs, otherBytes that of everything else.
	closedBytes, otherBytes int64
	// spanSeconds is the time that the closed pairs cover.
	spanSeconds float64
}

// pinTries is how often the list of pairs is made again because one went between listing and opening.
const pinTries = 5

// choose looks at the store and pins the pairs of all rounds.
func (r *run) choose() error {
	for try := 1; ; try++ {
		if err := r.look(); err != nil {
			return err
		}
		err := r.pin()
		if err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) || try == pinTries {
			return fmt.Errorf("open the file pairs of the sample: %w", err)
		}
	}
}

func (r *run) look() error {
	pairs, err := dbengine.ClosedPairs(vfs.OS{}, r.o.Dir)
	if err != nil {
		return err
	}
	if len(pairs) == 0 {
		return fmt.Errorf("%s has no closed file pair yet: there is nothing to try codecs on; a pair is closed when it holds a twentieth of the disk space (tidemark store info counts them), or at once by tidemark store recompress --older-than 0", r.o.Dir)
	}
	entries, err := os.ReadDir(r.o.Dir)
	if err != nil {
		return err
	}
	r.store = store{pairs: pairs, closedBytes: sizeOf(pairs)}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			r.store.otherBytes += info.Size()
		}
	}
	r.store.otherBytes = max(r.store.otherBytes-r.store.closedBytes, 0)
	from, to := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range pairs {
		from, to = min(from, pairs[i].From), max(to, pairs[i].To)
	}
	r.store.spanSeconds = float64(to-from) / 1e9
	r.rounds = sample(pairs, r.o.Rounds, r.o.Sample)
	return nil
}

func (r *run) pin() error {
	for _, pairs := range r.rounds {
		for i := range pairs {
			if err := r.pins.pin(r.o.Dir, &pairs[i]); err != nil {
				return errors.Join(err, r.pins.close())
			}
		}
	}
	return nil
}

// sample chooses the pairs of each round: spread evenly over the store from old to new, those of one round between those of the others. A round
// has at least one pair, and at most maxRoundBytes if that is more than one.
func sample(pairs []dbengine.ClosedPair, rounds int, part float64) [][]dbengine.ClosedPair {
	n := len(pairs)
	each := min(max(int(math.Round(float64(n)*part)), 1), n)
	if mean := sizeOf(pairs) / int64(n); mean > 0 {
		each = min(each, max(int(maxRoundBytes/mean), 1))
	}
	stride := float64(n) / float64(each)
	out := make([][]dbengine.ClosedPair, rounds)
	for k := range out {
		offset := (float64(k) + 0.5) / float64(rounds)
		for i := range each {
			out[k] = append(out[k], pairs[min(int((float64(i)+offset)*stride), n-1)])
		}
	}
	return out
}

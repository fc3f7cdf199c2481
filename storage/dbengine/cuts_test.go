package dbengine

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"tidemark/internal/vfs"
)

// perSeed does so many runs, each of another seed.
func perSeed(t *testing.T, rounds int, run func(t *testing.T, seed uint64) error) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for range rounds {
		seed++
		if err := run(t, seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// untilClones does runs of one seed after the other until so many clones were checked. It returns what the runs did besides, added up.
func untilClones(t *testing.T, total int, run func(t *testing.T, seed uint64) (clones, done int, err error)) (done int) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for clones := 0; clones < total; seed++ {
		n, d, err := run(t, seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		clones, done = clones+n, done+d
	}
	return done
}

// powerCuts checks what power cuts at random syncs would leave.
type powerCuts struct {
	mu     sync.Mutex
	clones int
	failed error
}

// cutPower cuts the power at one of so many syncs, until the test takes its function away from the file system. The random source belongs to the syncs.
func cutPower(fsys *vfs.Mem, r *rand.Rand, one int, promised func() promises) *powerCuts {
	c := &powerCuts{}
	fsys.OnSync(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.failed != nil || r.IntN(one) != 0 {
			return
		}
		p := promised()
		clone := fsys.CrashClone(r)
		c.clones++
		if c.failed = checkClone(clone, p, r); c.failed != nil {
			c.failed = fmt.Errorf("clone %d: %w", c.clones, c.failed)
		}
	})
	return c
}

// found returns how many clones there were, and what was wrong with one.
func (c *powerCuts) found() (clones int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clones, c.failed
}

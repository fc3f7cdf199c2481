package catalog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"tidemark/model"
)

// bring brings a follower up to date, in pieces of maxBytes.
func bring(t *testing.T, from *Catalog, f *Follower, maxBytes int) {
	t.Helper()
	for {
		records, at, end, err := from.ReadLog(f.Position(), maxBytes)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Apply(t.Context(), at, records, end); err != nil {
			t.Fatal(err)
		}
		if f.Position().Offset == end {
			return
		}
	}
}

func everyEntry(c *Catalog) []model.Entry {
	entries, _ := c.Search(Filter{Limit: 100_000})
	return entries
}

// TestFollower keeps a copy equal while items are declared and forgotten, the log is written anew, and the copy restarts.
func TestFollower(t *testing.T) {
	from := open(t, newFS(t), Options{})
	fsys := newFS(t)
	to := open(t, fsys, Options{})
	declare(t, to, 9, Declaration{Key: "only.here", ValueType: model.Float})
	f := to.NewFollower()
	r := rand.New(rand.NewPCG(5, 6))
	for round := range 30 {
		for range 20 {
			declare(t, from, model.HostID(1+r.IntN(3)), Declaration{Key: fmt.Sprint("key", r.IntN(200)), ValueType: model.ValueType(r.IntN(2)), Units: fmt.Sprint(r.IntN(2))})
		}
		switch round % 5 {
		case 2:
			if _, err := from.Expire(t.Context(), time.Now().Add(30*24*time.Hour).UnixNano(), func(id model.ItemID) int64 {
				if id%3 == 0 {
					return 0
				}
				return time.Now().Add(30 * 24 * time.Hour).UnixNano()
			}); err != nil {
				t.Fatal(err)
			}
		case 3:
			from.writer.Lock()
			err := from.rewrite()
			from.writer.Unlock()
			if err != nil {
				t.Fatal(err)
			}
		case 4:
			if err := to.Close(); err != nil {
				t.Fatal(err)
			}
			to = open(t, fsys, Options{})
			f = to.NewFollower()
		}
		bring(t, from, f, 1+r.IntN(2000))
		if got, want := everyEntry(to), everyEntry(from); !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: %d entries, expected %d:\n%+v\n%+v", round, len(got), len(want), got, want)
		}
	}
	theirs, err := from.NextItemID()
	if err != nil {
		t.Fatal(err)
	}
	if ours, err := to.NextItemID(); err != nil || ours < theirs {
		t.Errorf("the copy gives the id %d, the original gave %d; %v", ours, theirs, err)
	}
}

// FuzzFollower gives a follower bytes that no catalog wrote.
func FuzzFollower(f *testing.F) {
	whole := appendFrame(nil, headerBytes, appendReserve(nil, 77))
	f.Add(whole, uint64(1), int64(headerBytes), int64(headerBytes+len(whole)))
	f.Add(whole[:len(whole)-1], uint64(1), int64(headerBytes), int64(1000))
	f.Add([]byte{}, uint64(0), int64(-1), int64(0))
	f.Fuzz(func(t *testing.T, records []byte, number uint64, offset, end int64) {
		c := open(t, newFS(t), Options{})
		fo := c.NewFollower()
		if err := fo.Apply(t.Context(), Position{number, offset}, records, end); err != nil && !errors.Is(err, ErrRecords) {
			t.Error(err)
		}
	})
}

package server

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metrics"
)

// fakeHold is an engine whose pairs are all of one size.
type fakeHold struct {
	used, ceiling, pair int64
	deleted             uint64
	refusal             error
}

func (f *fakeHold) SetCeiling(n int64)       { f.ceiling = n }
func (f *fakeHold) CeilingDeletions() uint64 { return f.deleted }
func (f *fakeHold) FreeOldest(string) (int64, error) {
	if f.refusal != nil {
		return 0, f.refusal
	}
	f.used -= f.pair
	f.deleted++
	return f.pair, nil
}

func TestHold(t *testing.T) {
	const gib = int64(1) << 30
	var said strings.Builder
	e := &fakeHold{used: 10 * gib, pair: gib}
	fresh := func(o HeadroomOptions) *hold {
		e.used, e.ceiling, e.deleted, e.refusal = 10*gib, 0, 0, nil
		said.Reset()
		return &hold{o: o, engine: e, logger: slog.New(slog.NewTextHandler(&said, nil)), begun: metrics.NewSet().NewCounter("begun")}
	}
	look := func(h *hold, usedGiB int64) {
		room := Headroom{TotalBytes: 100 * gib, FreeBytes: (100 - usedGiB) * gib}
		room.grade()
		h.look(room, e.used)
	}
	h := fresh(HeadroomOptions{HoldAt: 80})
	look(h, 79)
	if e.ceiling != 0 || h.state().Held {
		t.Errorf("below the mark the ceiling is %d", e.ceiling)
	}
	look(h, 80)
	if e.ceiling != 10*gib || !h.state().Held || h.begun.Get() != 1 || !strings.Contains(said.String(), "past the mark") {
		t.Errorf("at the mark the ceiling is %d, said %s", e.ceiling, said.String())
	}
	e.used = 9 * gib
	look(h, 95)
	look(h, 79) // between: neither begins nor ends
	if e.ceiling != 10*gib || e.deleted != 0 || h.begun.Get() != 1 {
		t.Errorf("past the mark the ceiling is %d, %d pairs went", e.ceiling, e.deleted)
	}
	if look(h, 77); e.ceiling != 0 || h.state().Held {
		t.Errorf("with room again the ceiling is %d", e.ceiling)
	}
	e.used = gib / 8
	if look(h, 90); e.ceiling != 256<<20 {
		t.Errorf("a young store has the ceiling %d", e.ceiling)
	}
	h = fresh(HeadroomOptions{})
	if look(h, 99); e.ceiling != 0 {
		t.Errorf("switched off the ceiling is %d", e.ceiling)
	}
	(*hold)(nil).look(Headroom{}, 0)

	shrinks := HeadroomOptions{HoldAt: 80, Shrink: true}
	h = fresh(shrinks)
	for usedGiB := int64(83); usedGiB > 75; usedGiB-- {
		look(h, usedGiB)
	}
	if e.deleted != 4 || e.ceiling != 0 { // at 83, 82, 81, 80
		t.Errorf("shrinking deleted %d pairs, the ceiling is %d", e.deleted, e.ceiling)
	}
	h = fresh(shrinks)
	for range 5 {
		look(h, 90)
	}
	if e.deleted != 2 || !strings.Contains(h.state().Blocked, "freed nothing") || strings.Count(said.String(), "does not become smaller") != 1 {
		t.Errorf("two deletions in vain: %d pairs went, %+v", e.deleted, h.state())
	}
	h = fresh(shrinks)
	e.refusal = errors.New("a kept snapshot holds it")
	if look(h, 90); e.deleted != 0 || h.state().Blocked != "a kept snapshot holds it" {
		t.Errorf("held: %d, %+v", e.deleted, h.state())
	}
	e.refusal = nil
	if look(h, 90); e.deleted != 1 || h.state().Blocked != "" {
		t.Errorf("no longer held: %d, %+v", e.deleted, h.state())
	}
	h = fresh(shrinks)
	e.used = 200 << 20
	if look(h, 90); e.deleted != 0 || h.state().Blocked == "" {
		t.Errorf("a small store: %d, %+v", e.deleted, h.state())
	}
}

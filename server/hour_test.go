package server

import (
	"testing"
	"time"

	"tidemark/api/rest"
)

func TestPastHour(t *testing.T) {
	p := &pastHour{}
	start := time.Unix(1_000_000, 0)
	for i := range 300 {
		p.note(start.Add(time.Duration(i)*hourEvery), rest.Health{ValuesPerSecond: float64(i), StoreUsedBytes: int64(i)})
	}
	list := p.list()
	if len(list) != int(hourLength/hourEvery)+1 {
		t.Fatalf("%d points, want those of an hour", len(list))
	}
	if first, last := list[0], list[len(list)-1]; first.ValuesPerSecond != 179 || last.UsedBytes != 299 || last.At-first.At != hourLength.Milliseconds() {
		t.Errorf("from %+v to %+v", first, last)
	}
	list[0].At = 0
	if p.list()[0].At == 0 {
		t.Error("what was given out is the list itself")
	}
}

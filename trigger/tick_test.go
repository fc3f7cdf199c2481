package trigger

import (
	"context"
	"testing"
	"time"

	"tidemark/model"
)

func TestTick_nodata(t *testing.T) {
	r := newRig(t)
	r.apply(model.Trigger{Expression: "nodata(/h/f,60)=1"}, model.Trigger{Expression: "time()>=002000 and last(/h/g)>0"})
	r.tick(1010)
	r.wantFailure(1, "nodata(/h/f,60): the server or the item started less than the period ago")
	r.floats(1012, 1)
	r.wantFailure(1, "")
	r.tick(1050)
	r.want()
	r.tick(1080) // nothing for a minute
	r.want("1@1080 problem")
	r.now = time.Unix(1090, 0)
	r.floats(1090, 1)
	r.want("1@1080 problem", "1@1090 ok")
	b := model.NewBatch()
	b.AppendFloat(5, 1100*second, 1)
	r.send(b)
	r.tick(1140)
	r.want("1@1080 problem", "1@1090 ok")
	r.tick(1260) // 00:21:00
	r.want("1@1080 problem", "1@1090 ok", "1@1260 problem", "2@1260 problem")
	// A restart is no silence, and an item that nobody has heard of since needs no read of the history.
	r.start()
	r.apply(model.Trigger{Expression: "nodata(/h/f,60)=1"}, model.Trigger{Expression: "nodata(/h/u,60)=1"})
	r.engine.reads = 0
	r.tick(1300)
	r.wantFailure(2, "nodata(/h/u,60): the server or the item started less than the period ago")
	r.tick(1400)
	r.want("1@1080 problem", "1@1090 ok", "1@1260 problem", "2@1260 problem")
	if r.engine.reads != 0 {
		t.Errorf("%d reads of the history for nodata", r.engine.reads)
	}
}

// TestTick_fuzzytime watches a clock once a minute: between two values nothing is asked, however old the last one grows.
func TestTick_fuzzytime(t *testing.T) {
	r := newRig(t)
	r.apply(model.Trigger{Expression: "fuzzytime(/h/u,60s)=0"})
	clock := func(at, says int64) {
		b := model.NewBatch()
		b.AppendUint(2, at*second, uint64(says))
		r.now = time.Unix(at, 0)
		r.send(b)
	}
	clock(1000, 1001)
	clock(1060, 1000)
	r.want()
	clock(1120, 1120)
	r.tick(1150)
	r.tick(1300)
	r.want()
	clock(1360, 1299)
	r.want("1@1360 problem")
	clock(1420, 1420)
	r.want("1@1360 problem", "1@1420 ok")
}

func TestTick_spreadsTriggers(t *testing.T) {
	r := newRig(t)
	var triggers []model.Trigger
	for range 300 {
		triggers = append(triggers, model.Trigger{Expression: "nodata(/h/f,60)=1"})
	}
	r.apply(triggers...)
	total := 0
	for s := range int64(2 * timerSlots) {
		if err := r.evaluator.Tick(context.Background(), time.Unix(1000+s, 0)); err != nil {
			t.Fatal(err)
		}
		if n := len(r.evaluator.touched); n > 0 {
			total += n
			if n != 10 {
				t.Errorf("%d triggers in second %d, want 10", n, s)
			}
		}
	}
	if total != 600 {
		t.Errorf("%d evaluations in a minute, want 600", total)
	}
}

package reactor

import (
	"testing"
	"time"
)

func TestAlarm(t *testing.T) {
	for name, a := range map[string]*Alarm{"system": NewAlarm(), "runtime": newRuntimeAlarm()} {
		a.Set(0)
		if !a.Wait() {
			t.Errorf("%s: an alarm for now does not go off", name)
		}
		a.repeat(time.Millisecond)
		for range 3 {
			if !a.Wait() {
				t.Errorf("%s: an alarm does not go off again", name)
			}
		}
		a.Set(time.Hour)
		ended := make(chan bool)
		go func() { ended <- a.Wait() }()
		a.Close()
		if <-ended {
			t.Errorf("%s: an alarm went off before its time", name)
		}
		a.Close()
		if a.Wait() {
			t.Errorf("%s: a closed alarm went off", name)
		}
	}
	if NewAlarm().timer != nil {
		t.Error("an alarm of the system is one of the runtime")
	}
}

func TestTicker(t *testing.T) {
	ticker := NewTicker(time.Millisecond)
	for range 3 {
		if !ticker.Wait() {
			t.Error("no tick")
		}
	}
	ticker.Stop()
	ticker.Stop()
	if ticker.Wait() {
		t.Error("a tick after the end")
	}
}

// TestLoop: functions run one at a time, also those left by others, and all of them.
func TestLoop(t *testing.T) {
	l := &loop{}
	rounds, depth := 0, 0
	l.round = func(time.Time) (time.Duration, bool) {
		rounds++
		return time.Millisecond, rounds%3 != 0
	}
	const count = 200
	ran := make(chan struct{}, 4*count)
	one := func() {
		if depth++; depth != 1 {
			t.Error("two at once")
		}
		depth--
		ran <- struct{}{}
	}
	for range count {
		go l.Do(func() { one(); l.Do(one) })
		go l.DoAll(1, one)
		go l.DoAll(doMost+1, one)
	}
	for range 4 * count {
		select {
		case <-ran:
		case <-time.After(time.Minute):
			t.Fatal("a function was forgotten")
		}
	}
	l.close()
	before := rounds
	l.close()
	l.Do(one)
	<-ran
	l.close()
	if rounds <= before {
		t.Error("no rounds after the end")
	}
}

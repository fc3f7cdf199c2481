package rounds

import "testing"

func TestWaiters(t *testing.T) {
	var w Waiters
	w.Announce() // nobody waits
	first, second := w.Next(), w.Next()
	select {
	case <-first:
		t.Fatal("woken without an announcement")
	default:
	}
	w.Announce()
	<-first
	<-second
	select {
	case <-w.Next():
		t.Error("woken by an announcement of before")
	default:
	}
}

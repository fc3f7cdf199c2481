package key

import "time"

// The spans over which Zabbix averages, and the steps of the two rings that serve them.
const (
	fineStep   = time.Second
	coarseStep = 15 * time.Second
	windowLen  = 61 // one minute of fine steps, fifteen of coarse ones, and the sample to subtract from
)

// window keeps samples of a few rising counters: one a second for a minute, one per 15 s for a quarter of an hour.
// It gives differences over 1, 5 and 15 minutes at 10 KB for ten counters.
type window[T any] struct {
	fine, coarse ring[T]
}

type ring[T any] struct {
	at     [windowLen]time.Time
	sample []T // allocated with the first sample
	next   int
	count  int
}

func (r *ring[T]) put(at time.Time, sample T) {
	if r.sample == nil {
		r.sample = make([]T, windowLen)
	}
	r.at[r.next], r.sample[r.next] = at, sample
	r.next = (r.next + 1) % windowLen
	r.count = min(r.count+1, windowLen)
}

// before returns the youngest sample that is at least span old, or else the oldest.
func (r *ring[T]) before(now time.Time, span time.Duration) (time.Time, T, bool) {
	var none T
	if r.count == 0 {
		return time.Time{}, none, false
	}
	i := r.next
	for range r.count {
		i = (i + windowLen - 1) % windowLen
		if now.Sub(r.at[i]) >= span {
			break
		}
	}
	return r.at[i], r.sample[i], true
}

func (r *ring[T]) newest() time.Time { return r.at[(r.next+windowLen-1)%windowLen] }

func (w *window[T]) put(at time.Time, sample T) {
	const slack = fineStep / 10 // Ticks come a little early or late.
	if w.fine.count == 0 || at.Sub(w.fine.newest()) >= fineStep-slack {
		w.fine.put(at, sample)
	}
	if w.coarse.count == 0 || at.Sub(w.coarse.newest()) >= coarseStep-slack {
		w.coarse.put(at, sample)
	}
}

// before returns the sample to subtract from the newest one for the average over span.
func (w *window[T]) before(now time.Time, span time.Duration) (time.Time, T, bool) {
	if span <= time.Minute {
		return w.fine.before(now, span)
	}
	at, sample, ok := w.coarse.before(now, span)
	if fineAt, fine, fineOK := w.fine.before(now, span); fineOK && (!ok || fineAt.Before(at)) {
		return fineAt, fine, true
	}
	return at, sample, ok
}

// averageMode reads avg1, avg5 or avg15; zero means last: since the tick before.
func averageMode(mode string) (time.Duration, bool) {
	switch mode {
	case "avg1":
		return time.Minute, true
	case "avg5":
		return 5 * time.Minute, true
	case "avg15":
		return 15 * time.Minute, true
	case "last":
		return 0, true
	}
	return 0, false
}

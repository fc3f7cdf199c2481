package scrape

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"

	"tidemark/collect/series"
	"tidemark/model"
)

// accept asks for the text formats, acceptNative for protobuf before them: native histograms come in it only.
const (
	acceptNative = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7," + accept
	accept       = "application/openmetrics-text;version=1.0.0;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)

// stopTimeout is how long the stale markers of a target that went may take.
const stopTimeout = 30 * time.Second

// keepBodyBytes is the largest answer whose room is used again.
const keepBodyBytes = 1 << 20

// bodies are rooms for answers.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

var staleNaN = math.Float64frombits(value.StaleNaN)

// run asks the target at its interval until ctx ends. When the server goes on without it, which parent says, its series end.
func (t *target) run(ctx, parent context.Context) {
	interval := t.job.config.Interval
	rest := newSleeper()
	if t.line != nil {
		defer t.line.close()
	}
	for {
		if !t.job.s.clock.wait(ctx, rest, t.until(time.Now(), interval)) {
			if parent.Err() == nil {
				ctx, cancel := context.WithTimeout(parent, stopTimeout)
				defer cancel()
				t.end(ctx)
			}
			return
		}
		select {
		case t.job.s.slots <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		t.scrape(ctx)
		if t.line != nil && interval > keepFor {
			t.line.close()
		}
	}
}

// until is the time to the next scrape. Targets have fixed places in the interval, so that all are spread and a restart keeps the rhythm.
func (t *target) until(now time.Time, interval time.Duration) time.Duration {
	place := time.Duration(t.offset % uint64(interval))
	since := time.Duration(now.UnixNano() % int64(interval))
	wait := place - since
	if wait <= 0 {
		wait += interval
	}
	return wait
}

// scrape asks once and stores what came, or that nothing did. It gives back the slot that its caller has taken.
func (t *target) scrape(ctx context.Context) {
	s, started := t.job.s, time.Now()
	s.scrapes.Inc()
	at := started.UnixMilli() * int64(time.Millisecond)
	w := s.write()
	counts, took, err := t.read(ctx, w, at)
	if ctx.Err() != nil {
		w.Drop()
		<-s.slots
		return
	}
	if err != nil {
		w.Drop()
		w = s.write()
		s.failed.Inc()
		counts = t.fail(ctx, w, at)
	} else {
		s.samples.Add(counts.kept)
	}
	s.stale.Add(counts.stale)
	storeErr := t.report(ctx, w, at, took, counts, err == nil)
	s.storing <- struct{}{}
	<-s.slots // The answer is not needed any more.
	defer func() { <-s.storing }()
	if storeErr == nil {
		storeErr = w.Store(ctx)
	} else {
		w.Drop()
	}
	if ctx.Err() == nil {
		t.tell(w, started, took, counts, err, storeErr)
	}
}

// read asks and takes what came; took is how long the answer was awaited.
func (t *target) read(ctx context.Context, w *series.Write, at int64) (c counts, took time.Duration, err error) {
	started := time.Now()
	room := bodies.Get().(*[]byte)
	defer bodies.Put(room)
	body, contentType, err := t.ask(ctx, (*room)[:0])
	took = time.Since(started)
	if err != nil || ctx.Err() != nil {
		return c, took, err
	}
	if cap(body) <= keepBodyBytes {
		*room = body
	}
	c, err = t.take(ctx, w, body, contentType, at)
	return c, took, err
}

// tell keeps how the scrape went for whoever asks.
func (t *target) tell(w *series.Write, started time.Time, took time.Duration, c counts, err, storeErr error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.last.LastError
	t.last.Health, t.last.LastError = "up", ""
	if err != nil {
		t.last.Health, t.last.LastError = "down", err.Error()
	}
	if storeErr != nil {
		t.last.LastError = "the samples could not be stored: " + storeErr.Error()
	}
	t.last.LastScrape, t.last.LastDuration, t.last.Samples, t.last.Refused = started.UnixMilli(), took.Seconds(), c.scraped, w.Why()
	if t.last.LastError != "" && t.last.LastError != was {
		t.job.s.o.Logger.Warn("scrape failed", "job", t.job.config.JobName, "target", t.shown, "error", t.last.LastError)
	}
}

// ask returns the answer, in dst if there is room, and its type.
func (t *target) ask(ctx context.Context, dst []byte) ([]byte, string, error) {
	c := t.job.config
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, http.NoBody)
	if err != nil {
		return nil, "", err
	}
	r.Header.Set("Accept", accept)
	if is(c.NativeHistograms) {
		r.Header.Set("Accept", acceptNative)
	}
	r.Header.Set("User-Agent", t.job.s.o.Agent)
	r.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", strconv.FormatFloat(c.Timeout.Seconds(), 'f', -1, 64))
	return t.job.client.read(r, t.line, c.BodyBytes, dst)
}

// report adds the series about the scrape, which have the labels of the target only.
func (t *target) report(ctx context.Context, w *series.Write, at int64, took time.Duration, c counts, up bool) error {
	health := 0.0
	if up {
		health = 1
	}
	for _, r := range []struct {
		name  string
		value float64
	}{
		{"up", health},
		{"scrape_duration_seconds", took.Seconds()},
		{"scrape_samples_scraped", float64(c.scraped)},
		{"scrape_samples_post_metric_relabeling", float64(c.kept)},
		{"scrape_series_added", float64(c.added)},
	} {
		w.Series(t.withName(r.name), func() series.Info { return series.Info{Host: t.host, Interval: t.job.config.Interval} })
		if err := w.Sample(ctx, at, r.value); err != nil {
			return err
		}
	}
	return nil
}

func (t *target) withName(name string) model.Labels {
	b := labels.NewBuilder(t.labels)
	b.Set(series.NameLabel, name)
	return modelLabels(b.Labels())
}

// modelLabels turns Prometheus' labels, which are sorted by name, into ours.
func modelLabels(l labels.Labels) model.Labels {
	out := make(model.Labels, 0, l.Len())
	l.Range(func(l labels.Label) { out = append(out, model.Label{Name: l.Name, Value: l.Value}) })
	return out
}

// end writes stale markers for all that the target had, because it is not asked any more.
func (t *target) end(ctx context.Context) {
	at := time.Now().UnixMilli() * int64(time.Millisecond)
	if len(t.cache.entries) == 0 {
		return
	}
	w := t.job.s.write()
	c := t.fail(ctx, w, at)
	t.job.s.stale.Add(c.stale)
	var err error
	for _, name := range []string{"up", "scrape_duration_seconds", "scrape_samples_scraped", "scrape_samples_post_metric_relabeling", "scrape_series_added"} {
		if _, known := w.Series(t.withName(name), func() series.Info { return series.Info{Host: t.host} }); known && err == nil {
			err = w.Sample(ctx, at, staleNaN)
		}
	}
	if err == nil {
		err = w.Store(ctx)
	}
	w.Drop()
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) { // the server that stops meanwhile keeps the target
		t.job.s.o.Logger.Error("stale markers of a target that went could not be stored; its series end when their look-back does", "target", t.shown, "error", fmt.Errorf("%w", err))
	}
}

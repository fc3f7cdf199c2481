package series

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"tidemark/collect"
	"tidemark/model"
)

const (
	// batchRows ends a batch, so that one request cannot be larger than the history cache.
	batchRows = 16 << 10
	// maxFresh bounds the new series that wait to be declared together, and their samples.
	maxFresh        = 4096
	maxFreshSamples = 64 << 10
)

// ErrNotDurable is returned when the values did not become durable in time; they may be sent again.
var ErrNotDurable = errors.New("the values did not become durable in time")

// Write takes the samples of one request or scrape. It belongs to one goroutine.
type Write struct {
	t       *Table
	sink    collect.Sink
	arrived int64
	batch   *model.Batch
	done    *model.Completion
	put     bool
	// whole keeps everything back until Store.
	whole bool

	fresh        []*fresh
	byKey        map[string]*fresh
	freshSamples int

	key []byte
	// scratch are the labels of what a histogram is made into.
	scratch model.Labels
	// current is what Series found.
	current Ref
	waiting *fresh
	why     Reason
	bad     bool

	// Stored and Refused count samples.
	Stored  int
	Refused [reasonCount]int
	// First says what was wrong with the first invalid series.
	First string
}

// Ref is a series whose item is known.
type Ref struct{ id model.ItemID }

// Write begins a request. Store or Drop must follow.
func (t *Table) Write() *Write {
	w := &Write{t: t, sink: t.o.Sink, arrived: t.o.Now(), done: model.NewCompletion()}
	w.newBatch()
	return w
}

// WriteWhole is Write for samples that are all stored or none, through a sink on the way to that of the table: nothing is handed over or declared
// before Store. The caller bounds them.
func (t *Table) WriteWhole(sink collect.Sink) *Write {
	w := t.Write()
	w.whole, w.sink = true, sink
	return w
}

func (w *Write) newBatch() {
	w.batch = model.NewBatch()
	w.batch.ArrivedAt = w.arrived
}

// Info is what else is known of a series.
type Info struct {
	Host       Host
	Help, Unit string
	Interval   time.Duration
}

// Known makes a series whose item is known the one that Sample adds to; it reports false when the item is gone or its host disabled.
func (w *Write) Known(r Ref) bool {
	there, enabled := w.t.o.Items.Takes(r.id)
	w.current, w.waiting, w.bad, w.why = r, nil, !there || !enabled, Disabled
	return there && enabled
}

// Series makes a series the one that Sample adds to. Labels are sorted by name, each once; those without a value are left out. It keeps
// nothing of them. The Ref is good for Known when ok.
func (w *Write) Series(labels model.Labels, info func() Info) (r Ref, ok bool) {
	w.waiting, w.bad, w.current = nil, false, Ref{}
	metric, rest, wrong := split(labels)
	if wrong != "" {
		w.bad, w.why = true, Invalid
		if w.First == "" {
			w.First = wrong
		}
		return Ref{}, false
	}
	w.key = appendKey(w.key[:0], metric, rest)
	if utf8.RuneCount(w.key) > maxKeyRunes {
		sum := sha256.Sum256(w.key)
		w.key = appendKey(w.key[:0], metric, model.Labels{{Name: "…", Value: hex.EncodeToString(sum[:16])}})
	}
	if id, found := w.t.find(w.key); found {
		there, enabled := w.t.o.Items.Takes(id)
		if there {
			w.current, w.bad, w.why = Ref{id}, !enabled, Disabled
			return w.current, enabled
		}
	}
	f := w.byKey[string(w.key)]
	if f == nil {
		more := info()
		f = &fresh{host: more.Host, decl: Declaration{
			Key: string(w.key), Metric: strings.Clone(metric), Labels: clone(rest), Help: more.Help, Unit: more.Unit, Interval: more.Interval,
		}}
		if w.byKey == nil {
			w.byKey = map[string]*fresh{}
		}
		w.byKey[f.decl.Key] = f
		w.fresh = append(w.fresh, f)
	}
	w.waiting = f
	return Ref{}, false
}

// split checks labels and takes the metric's name out; labels without a value go.
func split(labels model.Labels) (metric string, rest model.Labels, wrong string) {
	if len(labels) > MaxLabels {
		return "", nil, fmt.Sprintf("a series has %d labels, expected at most %d", len(labels), MaxLabels)
	}
	bytes, last := 0, ""
	rest = make(model.Labels, 0, len(labels))
	for i, l := range labels {
		bytes += len(l.Name) + len(l.Value)
		switch {
		case l.Name == "" || len(l.Name) > 200 || !utf8.ValidString(l.Name) || !utf8.ValidString(l.Value):
			return "", nil, fmt.Sprintf("label %.60q=%.60q of series %.60q: expected UTF-8, and a name of 1 to 200 bytes", l.Name, l.Value, metric)
		case i > 0 && l.Name <= last:
			return "", nil, fmt.Sprintf("label %.60q of series %.60q comes behind %.60q: expected labels sorted by name, each once", l.Name, metric, last)
		case bytes > MaxLabelBytes:
			return "", nil, fmt.Sprintf("the labels of series %.60q have more than %d bytes", metric, MaxLabelBytes)
		}
		last = l.Name
		switch {
		case l.Name == NameLabel:
			metric = l.Value
		case l.Value != "":
			rest = append(rest, l)
		}
	}
	if metric == "" || len(metric) > 512 {
		return "", nil, fmt.Sprintf("a series has a name of %d bytes, expected 1 to 512", len(metric))
	}
	return metric, rest, ""
}

// Sample adds a sample to the series that Series or Known named; at is Unix nanoseconds.
func (w *Write) Sample(ctx context.Context, at int64, value float64) error {
	switch {
	case w.bad:
		w.refuse(w.why, 1)
		return nil
	case w.waiting != nil:
		w.waiting.at = append(w.waiting.at, at)
		w.waiting.values = append(w.waiting.values, value)
		w.freshSamples++
		if !w.whole && (len(w.fresh) >= maxFresh || w.freshSamples >= maxFreshSamples) {
			return w.flush(ctx)
		}
		return nil
	}
	return w.add(ctx, w.current.id, at, value)
}

// Add adds a sample to a series for which Known was true in this whole write.
func (w *Write) Add(r Ref, at int64, value float64) {
	w.batch.AppendFloat(r.id, at, value)
	w.Stored++
}

func (w *Write) refuse(why Reason, n int) {
	w.Refused[why] += n
	w.t.refused[why].Add(n)
}

func (w *Write) add(ctx context.Context, id model.ItemID, at int64, value float64) error {
	w.batch.AppendFloat(id, at, value)
	w.Stored++
	if !w.whole && w.batch.Len() >= batchRows {
		return w.handOver(ctx)
	}
	return nil
}

// flush declares what is new and adds its samples. The series that is under way must be named again.
func (w *Write) flush(ctx context.Context) error {
	if len(w.fresh) == 0 {
		return nil
	}
	if err := w.t.declare(ctx, w.fresh); err != nil {
		return err
	}
	for _, f := range w.fresh {
		if f.refused {
			w.refuse(TooMany, len(f.at))
			continue
		}
		for i, at := range f.at {
			if err := w.add(ctx, f.id, at, f.values[i]); err != nil {
				return err
			}
		}
	}
	if f := w.waiting; f != nil {
		w.current, w.waiting, w.bad, w.why = Ref{f.id}, nil, f.refused, TooMany
	}
	w.fresh, w.freshSamples = w.fresh[:0], 0
	clear(w.byKey)
	return nil
}

// handOver Puts the batch and starts a new one.
func (w *Write) handOver(ctx context.Context) error {
	w.done.Add(1)
	w.batch.Done = append(w.batch.Done, w.done)
	n := w.batch.Len()
	if err := w.sink.Put(ctx, w.batch); err != nil {
		clear(w.batch.Done)
		w.batch.Done = w.batch.Done[:0]
		return fmt.Errorf("hand over %d values: %w", n, err)
	}
	w.put = true
	w.newBatch()
	return nil
}

// Store hands over what is left and waits until all is durable. After an error the request may be sent again: what was stored is then a
// duplicate.
func (w *Write) Store(ctx context.Context) error {
	defer w.Drop()
	if err := w.flush(ctx); err != nil {
		return err
	}
	if w.batch.Len() > 0 {
		if err := w.handOver(ctx); err != nil {
			return err
		}
	}
	if !w.put {
		return nil
	}
	w.done.Finish(nil)
	timer := time.NewTimer(w.t.o.StoreTimeout)
	defer timer.Stop()
	select {
	case <-w.done.Done():
		if err := w.done.Err(); err != nil {
			return err
		}
		w.t.samples.Add(w.Stored)
		return nil
	case <-timer.C:
		return ErrNotDurable
	}
}

// Drop ends a request whose samples shall not be stored; what was handed over already is. A second call does nothing.
func (w *Write) Drop() {
	if w.batch != nil {
		w.batch.Free()
		w.batch = nil
	}
}

// RefusedCount is the number of refused samples; Why says what was wrong with them.
func (w *Write) RefusedCount() int {
	sum := 0
	for _, n := range w.Refused {
		sum += n
	}
	return sum
}

// Why names the refused samples by reason.
func (w *Write) Why() string {
	text := ""
	for i, n := range w.Refused {
		if n == 0 {
			continue
		}
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("%d samples refused: %s", n, Reason(i))
		if Reason(i) == Invalid && w.First != "" {
			text += " (" + w.First + ")"
		}
	}
	return text
}

func clone(labels model.Labels) model.Labels {
	out := make(model.Labels, len(labels))
	for i, l := range labels {
		out[i] = model.Label{Name: strings.Clone(l.Name), Value: strings.Clone(l.Value)}
	}
	return out
}

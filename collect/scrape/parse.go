package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/model/textparse"

	"tidemark/collect/series"
	"tidemark/config"
	"tidemark/model"
)

// cache knows the series of a target by the text in which it sends them, so that labels are made once.
type cache struct {
	entries map[string]*entry
	// round numbers the scrapes.
	round uint64
	form  form
	// values is room for those of an answer.
	values []float64
}

// entry is one series as the target writes it.
type entry struct {
	ref series.Ref
	// known says that ref is good; until then labels are kept.
	known  bool
	labels model.Labels
	// dropped says that relabelling does not want it; timed, that it has times of its own and gets no stale markers.
	dropped, timed bool
	// round is the scrape that had it last, born the first.
	round, born uint64
}

// counts are those of one scrape.
type counts struct{ scraped, kept, added, stale int }

// parsing is one scrape on its way.
type parsing struct {
	t      *target
	ctx    context.Context //nolint:containedctx // lives as long as its scrape
	w      *series.Write
	at     int64
	counts counts
	// helpOf and help are the last HELP line, unitOf and unit the last UNIT line.
	helpOf, help, unitOf, unit string
	// suffix and le are those of the sample at hand where it is a part of a native histogram.
	suffix, le string
	key        []byte
	// order are the entries of the lines so far; nil for one that the answer had before.
	order []*entry
	// values are theirs; stamped says that one has a time of its own.
	values  []float64
	stamped bool
}

// take adds all samples of an answer. After an error none of it counts, and the cache is as a failed scrape leaves it.
func (t *target) take(ctx context.Context, w *series.Write, body []byte, contentType string, at int64) (counts, error) {
	p := &parsing{t: t, ctx: ctx, w: w, at: at}
	before := t.cache.round
	t.cache.round++
	if p.again(body, contentType) {
		return p.counts, nil
	}
	t.cache.round = before
	parser, err := textparse.New(body, contentType, labels.NewSymbolTable(), textparse.ParserOptions{
		FallbackContentType: "text/plain", IgnoreNativeHistograms: !is(t.job.config.NativeHistograms), KeepClassicOnClassicAndNativeHistograms: is(t.job.config.ClassicToo),
	})
	if parser == nil {
		return counts{}, fmt.Errorf("the answer has no format that is known: %w", err)
	}
	t.cache.round++
	p.order = make([]*entry, 0, len(t.cache.form.order))
	t.cache.form.order = nil
	for {
		kind, err := parser.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = p.entry(parser, kind)
		}
		if err != nil {
			t.cache.undo(before)
			return counts{}, err
		}
	}
	if !p.stamped {
		t.cache.form.learn(body, contentType, p.order, p.values)
	}
	return p.counts, p.vanished(before)
}

// undo makes the entries of a scrape that does not count look like those of the one before, so that they get stale markers, and forgets
// those that are new.
func (c *cache) undo(before uint64) {
	for text, e := range c.entries {
		if e.born > before {
			delete(c.entries, text)
		}
		e.round = min(e.round, before)
	}
	c.round = before
}

// entry takes one line.
func (p *parsing) entry(parser textparse.Parser, kind textparse.Entry) error {
	switch kind {
	case textparse.EntryHelp:
		name, text := parser.Help()
		p.helpOf, p.help = string(name), string(text)
	case textparse.EntryUnit:
		name, text := parser.Unit()
		p.unitOf, p.unit = string(name), string(text)
	case textparse.EntryHistogram:
		return p.histogram(parser)
	case textparse.EntrySeries:
		text, own, v := parser.Series()
		return p.sample(parser, text, own, v)
	}
	return nil
}

func (p *parsing) sample(parser textparse.Parser, text []byte, own *int64, v float64) error {
	p.counts.scraped++
	p.values, p.stamped = append(p.values, v), p.stamped || own != nil
	c := p.t.job.config
	e := p.t.cache.entries[string(text)]
	if e != nil && e.round == p.t.cache.round {
		p.order = append(p.order, nil)
		return nil // a second time in one answer
	}
	if e == nil {
		e = &entry{born: p.t.cache.round}
		if err := p.label(parser, e); err != nil {
			return err
		}
		if len(p.t.cache.entries) > 2*config.MaxScrapeSamples {
			return fmt.Errorf("the answer has more than %d series", 2*config.MaxScrapeSamples)
		}
		p.t.cache.entries[string(text)] = e
		if !e.dropped {
			p.counts.added++
		}
	}
	e.round = p.t.cache.round
	p.order = append(p.order, e)
	if e.dropped {
		return nil
	}
	if p.counts.kept++; c.SampleLimit > 0 && p.counts.kept > c.SampleLimit {
		return fmt.Errorf("the answer has more than %d samples (sample_limit)", c.SampleLimit)
	}
	if p.counts.kept > config.MaxScrapeSamples {
		return fmt.Errorf("the answer has more than %d samples, the most that a target may have; drop some with metric_relabel_configs or split the target with params", config.MaxScrapeSamples)
	}
	at := p.at
	e.timed = own != nil && (c.HonorTimestamps == nil || *c.HonorTimestamps)
	if e.timed {
		at = *own * int64(time.Millisecond)
	}
	if err := p.choose(parser, e); err != nil {
		return err
	}
	return p.w.Sample(p.ctx, at, v)
}

// choose makes the series of an entry the one that samples go to.
func (p *parsing) choose(parser textparse.Parser, e *entry) error {
	if e.known && p.w.Known(e.ref) {
		return nil
	}
	if e.labels == nil { // its item was forgotten
		if err := p.label(parser, e); err != nil {
			return err
		}
	}
	e.ref, e.known = p.w.Series(e.labels, func() series.Info {
		metric := e.labels.Get(series.NameLabel)
		info := series.Info{Host: p.t.host, Interval: p.t.job.config.Interval}
		if strings.HasPrefix(metric, p.helpOf) {
			info.Help = p.help
		}
		if strings.HasPrefix(metric, p.unitOf) {
			info.Unit = p.unit
		}
		return info
	})
	if e.known {
		e.labels = nil
	}
	return nil
}

// label makes the labels of a series as Prometheus does: those of the target joined, then relabelled, then measured.
func (p *parsing) label(parser textparse.Parser, e *entry) error {
	var own labels.Labels
	parser.Labels(&own)
	if p.suffix != "" {
		own = p.partLabels(own)
	}
	c := p.t.job.config
	b := labels.NewBuilder(own)
	p.t.labels.Range(func(l labels.Label) {
		old := own.Get(l.Name)
		switch {
		case old == "":
			b.Set(l.Name, l.Value)
		case c.HonorLabels:
		default:
			moved := "exported_" + l.Name
			for b.Get(moved) != "" {
				moved = "exported_" + moved
			}
			b.Set(moved, old)
			b.Set(l.Name, l.Value)
		}
	})
	if !relabel.ProcessBuilder(b, c.MetricRelabel...) {
		e.dropped = true
		return nil
	}
	all := b.Labels()
	if all.Get(series.NameLabel) == "" {
		return fmt.Errorf("a series has no name after metric_relabel_configs: %.100s", own.String())
	}
	e.labels = modelLabels(all)
	if c.LabelLimit > 0 && len(e.labels) > c.LabelLimit {
		return fmt.Errorf("%.100s has %d labels; expected at most %d (label_limit)", own.String(), len(e.labels), c.LabelLimit)
	}
	for _, l := range e.labels {
		if c.LabelNameLengthLimit > 0 && len(l.Name) > c.LabelNameLengthLimit {
			return fmt.Errorf("label %.60q of %.60q has a name of %d bytes; expected at most %d (label_name_length_limit)", l.Name, all.Get(series.NameLabel), len(l.Name), c.LabelNameLengthLimit)
		}
		if c.LabelValueLengthLimit > 0 && len(l.Value) > c.LabelValueLengthLimit {
			return fmt.Errorf("label %.60q of %.60q has a value of %d bytes; expected at most %d (label_value_length_limit)", l.Name, all.Get(series.NameLabel), len(l.Value), c.LabelValueLengthLimit)
		}
	}
	return nil
}

// vanished ends the series that were in the scrape before and are not in this one, and forgets them.
func (p *parsing) vanished(before uint64) error {
	for text, e := range p.t.cache.entries {
		if e.round > before {
			continue
		}
		delete(p.t.cache.entries, text)
		if e.dropped || e.timed {
			continue
		}
		p.counts.stale++
		if err := endSeries(p.ctx, p.w, e, p.t.host, p.at); err != nil {
			return err
		}
	}
	return nil
}

// endSeries writes the stale marker of a series whose item is still there.
func endSeries(ctx context.Context, w *series.Write, e *entry, host series.Host, at int64) error {
	known := e.known && w.Known(e.ref)
	if !e.known {
		_, known = w.Series(e.labels, func() series.Info { return series.Info{Host: host} })
	}
	if !known {
		return nil
	}
	return w.Sample(ctx, at, staleNaN)
}

// fail ends everything that the last good scrape had.
func (t *target) fail(ctx context.Context, w *series.Write, at int64) counts {
	t.cache.form.order = nil
	p := &parsing{t: t, ctx: ctx, w: w, at: at}
	if err := p.vanished(t.cache.round); err != nil && ctx.Err() == nil {
		t.job.s.o.Logger.Error("stale markers could not be made", "target", t.shown, "error", err)
	}
	return counts{stale: p.counts.stale}
}

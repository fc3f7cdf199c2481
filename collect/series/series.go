// Package series is how samples of Prometheus and OpenTelemetry become values: it knows which item a series is, declares the items of new
// series on the host of their target, and hands batches on.
//
// A series is one thing wherever it comes from: its labels are its name. The first target that brings it gives it its host.
package series

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/collect"
	"tidemark/model"
)

// Limits of what one series may be.
const (
	// MaxLabels and MaxLabelBytes bound the labels of a series, with its name.
	MaxLabels     = 64
	MaxLabelBytes = 8 << 10
	// maxKeyRunes is the length of an item's key.
	maxKeyRunes = 2048
)

// NameLabel is the label that holds the name of a metric.
const NameLabel = "__name__"

// Declaration is a series that is seen for the first time.
type Declaration struct {
	// Key is the text of the series, Metric its name, Labels its other labels, sorted.
	Key, Metric string
	Labels      model.Labels
	Help, Unit  string
	// Interval is the time between two samples; zero when not known.
	Interval time.Duration
}

// Host is the host of a target.
type Host struct {
	// Name is a valid technical name, see HostName; Visible is for people.
	Name, Visible string
}

// Items makes items and hosts.
type Items interface {
	// Hosts returns the ids of hosts, which it makes if need be; one that it must not make has id 0.
	Hosts(ctx context.Context, hosts []Host) ([]model.HostID, error)
	// Declare makes the items of a host durable and returns their ids; those over a limit or invalid have id 0.
	Declare(ctx context.Context, host model.HostID, list []Declaration) ([]model.ItemID, error)
	// Takes reports whether the item is there and its host enabled.
	Takes(id model.ItemID) (there, enabled bool)
	// Each calls fn for every item that is a series.
	Each(fn func(key string, id model.ItemID))
}

// Options of a Table.
type Options struct {
	Items Items
	Sink  collect.Sink
	// MaxSeries bounds the series of all targets; zero means 500,000.
	MaxSeries int
	// StoreTimeout is how long Store waits; zero means 30 s.
	StoreTimeout time.Duration
	// Now is Unix nanoseconds; nil means the clock.
	Now func() int64
	// Metrics may be nil.
	Metrics *metrics.Set
}

const (
	defaultMaxSeries    = 500_000
	defaultStoreTimeout = 30 * time.Second
)

// Table knows the item of each series. It is safe for use by several goroutines.
type Table struct {
	o Options

	mu  sync.RWMutex
	ids map[string]model.ItemID

	// declaring is held while hosts and items are made, or hosts without items are dropped.
	declaring sync.Mutex

	samples, declared *metrics.Counter
	refused           [reasonCount]*metrics.Counter
}

// Reason is why a sample was refused.
type Reason int

// The reasons.
const (
	// Invalid: the labels are no series.
	Invalid Reason = iota
	// TooMany: over the limit of series, of hosts, or of a host's items.
	TooMany
	// Disabled: the host is disabled.
	Disabled
	reasonCount
)

// String names the reason for people.
func (r Reason) String() string {
	return [...]string{"invalid labels", "over the limit of series or hosts", "host is disabled"}[r]
}

// New returns a table that knows the series that are there.
func New(o Options) *Table {
	if o.MaxSeries == 0 {
		o.MaxSeries = defaultMaxSeries
	}
	if o.StoreTimeout == 0 {
		o.StoreTimeout = defaultStoreTimeout
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	set := o.Metrics
	if set == nil {
		set = metrics.NewSet()
	}
	t := &Table{o: o, ids: map[string]model.ItemID{}}
	o.Items.Each(func(key string, id model.ItemID) { t.ids[key] = id })
	set.NewGauge("tidemark_series", func() float64 { return float64(t.Len()) })
	set.NewGauge("tidemark_series_limit", func() float64 { return float64(o.MaxSeries) })
	t.samples = set.NewCounter("tidemark_series_samples_total")
	t.declared = set.NewCounter("tidemark_series_declared_total")
	for i, name := range [...]string{"invalid", "limit", "disabled"} {
		t.refused[i] = set.NewCounter(`tidemark_series_refused_samples_total{reason="` + name + `"}`)
	}
	return t
}

// Sink is where the samples go.
func (t *Table) Sink() collect.Sink { return t.o.Sink }

// Len returns how many series are known.
func (t *Table) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.ids)
}

func (t *Table) find(key []byte) (model.ItemID, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	id, ok := t.ids[string(key)]
	return id, ok
}

// Sweep forgets series whose items are gone, and calls fn, if not nil, while no host and no item is made.
func (t *Table) Sweep(fn func() error) error {
	t.declaring.Lock()
	defer t.declaring.Unlock()
	t.mu.Lock()
	for key, id := range t.ids {
		if there, _ := t.o.Items.Takes(id); !there {
			delete(t.ids, key)
		}
	}
	t.mu.Unlock()
	if fn == nil {
		return nil
	}
	return fn()
}

// fresh is a series that must be declared, with its samples.
type fresh struct {
	host    Host
	decl    Declaration
	at      []int64
	values  []float64
	id      model.ItemID
	refused bool
}

// declare makes the items of new series; those that it may not make stay refused.
func (t *Table) declare(ctx context.Context, list []*fresh) error {
	t.declaring.Lock()
	defer t.declaring.Unlock()
	// Somebody else may have declared some of them meanwhile.
	room := t.o.MaxSeries - t.Len()
	wanted := list[:0:0]
	for _, f := range list {
		id, ok := t.find([]byte(f.decl.Key))
		there, enabled := false, false
		if ok {
			there, enabled = t.o.Items.Takes(id)
		}
		switch {
		case there && enabled:
			f.id = id
		case there || room <= 0 && !ok:
			f.refused = true
		default:
			if !ok {
				room--
			}
			wanted = append(wanted, f)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	slices.SortStableFunc(wanted, func(a, b *fresh) int { return cmp.Compare(a.host.Name, b.host.Name) })
	var hosts []Host
	for i, f := range wanted {
		if i == 0 || wanted[i-1].host.Name != f.host.Name {
			hosts = append(hosts, f.host)
		}
	}
	ids, err := t.o.Items.Hosts(ctx, hosts)
	if err != nil {
		return fmt.Errorf("make the hosts of %d series: %w", len(wanted), err)
	}
	for i := range hosts {
		n := 0
		for n < len(wanted) && wanted[n].host.Name == hosts[i].Name {
			n++
		}
		if err := t.declareOn(ctx, ids[i], wanted[:n]); err != nil {
			return err
		}
		wanted = wanted[n:]
	}
	return nil
}

// declareOn declares the series of one host; without a host all are refused.
func (t *Table) declareOn(ctx context.Context, host model.HostID, list []*fresh) error {
	decls := make([]Declaration, len(list))
	for i, f := range list {
		decls[i], f.refused = f.decl, true
	}
	if host == 0 {
		return nil
	}
	ids, err := t.o.Items.Declare(ctx, host, decls)
	if err != nil {
		return fmt.Errorf("declare %d series of host %s: %w", len(list), list[0].host.Name, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, f := range list {
		if ids[i] == 0 {
			continue
		}
		f.id, f.refused = ids[i], false
		t.ids[f.decl.Key] = ids[i]
		t.declared.Inc()
	}
	return nil
}

// HostName makes a technical name of a text: what no name may have becomes an underscore.
func HostName(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("._- ", r):
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
		if b.Len() >= 128 {
			break
		}
	}
	name := strings.TrimSpace(b.String())
	if name == "" {
		return "metrics"
	}
	return name
}

// HostOf is the host of the target that job and instance name.
func HostOf(job, instance string) Host {
	switch {
	case job == "" && instance == "":
		return Host{"metrics", "metrics"}
	case instance == "" || instance == job:
		return Host{HostName(job), job}
	case job == "":
		return Host{HostName(instance), instance}
	}
	return Host{HostName(instance + " " + job), instance + " " + job}
}

// appendKey appends the text of a series: name{label="value",…}. A name that is no plain word stands in the braces, as Prometheus writes it.
func appendKey(dst []byte, metric string, labels model.Labels) []byte {
	first := true
	if plain(metric) {
		dst = append(dst, metric...)
		dst = append(dst, '{')
	} else {
		dst = append(dst, '{')
		dst = strconv.AppendQuote(dst, metric)
		first = false
	}
	for _, l := range labels {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		if plain(l.Name) {
			dst = append(dst, l.Name...)
		} else {
			dst = strconv.AppendQuote(dst, l.Name)
		}
		dst = append(dst, '=')
		dst = strconv.AppendQuote(dst, l.Value)
	}
	return append(dst, '}')
}

func plain(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && c != ':' && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

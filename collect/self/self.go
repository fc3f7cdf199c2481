// Package self answers internal items: what the server knows of itself, under the names zabbix[…] that people have in their
// templates, and tidemark[…] for every metric of its own.
//
// Most answers are read from the server's metrics, so that the page, a Prometheus that scrapes it and internal items show the same
// numbers. Source of the names: Zabbix documentation, "Internal checks", versions 6.0 and 7.0.
package self

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/collect/poller"
	"tidemark/expr"
	"tidemark/model"
	"tidemark/wire/exposition"
)

// Counts are the sizes of the configuration.
type Counts struct {
	// Hosts are those that are enabled, Items and Triggers the enabled ones of enabled hosts.
	Hosts, Items, Triggers int
	// Unsupported are items that could not be measured last time.
	Unsupported int
	// Performance is how many values a second the intervals of all items ask for.
	Performance float64
}

// Host is what internal items tell of one host.
type Host struct {
	Items, Unsupported int
	// Maintenance is 0 for none, 1 with and 2 without data.
	Maintenance int
	// Interfaces are JSON for discovery, may be nil.
	Interfaces []byte
}

// Server is what the checker asks the server.
type Server interface {
	Counts() Counts
	// Host tells of the host of an item.
	Host(id model.HostID) (Host, bool)
	// Available is 0 for not known, 1 for yes and 2 for no, for the interfaces of a kind: agent, snmp, ipmi, jmx or active_agent.
	Available(id model.HostID, kind string) int
	// Queue counts items that are late by at least from and, unless it is zero, less than to.
	Queue(from, to time.Duration) int
}

// Process is a part of the server under the name that Zabbix has for the process that does the same work.
type Process struct {
	// Name is Zabbix's: "history syncer".
	Name string
	// Count is how many work side by side.
	Count int
	// BusySeconds are counters of the seconds that they worked, all together.
	BusySeconds []string
	// Percent, if not nil, tells how busy they are, 0 to 100, instead of BusySeconds.
	Percent func() float64
}

// Options of a Checker. All but Processes are needed.
type Options struct {
	Metrics   *metrics.Set
	Server    Server
	Processes []Process
	Version   string
	Started   time.Time
}

// Checker answers internal items; it is a poller.Checker.
type Checker struct {
	o         Options
	processes map[string]*Process

	mu sync.Mutex
	// page are the metrics at pageAt.
	page    *exposition.Page
	pageAt  time.Time
	samples []sample
}

// sample are the counters of busy seconds at a time.
type sample struct {
	at   time.Time
	busy map[string]float64
}

const (
	// pageAge is how long metrics are reused, so that the items of one round cost one look.
	pageAge = 500 * time.Millisecond
	// busyOver is the time that a busy share is about, as in Zabbix.
	busyOver = time.Minute
	// sampleEvery spaces the samples, maxSamples bounds them.
	sampleEvery = 5 * time.Second
	maxSamples  = int(busyOver/sampleEvery) + 2
)

var _ poller.Checker = (*Checker)(nil)

// New returns a checker.
func New(o Options) *Checker {
	c := &Checker{o: o, processes: make(map[string]*Process, len(o.Processes))}
	for i := range o.Processes {
		c.processes[o.Processes[i].Name] = &o.Processes[i]
	}
	return c
}

// Check implements poller.Checker.
func (c *Checker) Check(_ context.Context, tasks []*poller.Task, results []poller.Result) {
	now := time.Now()
	for i, t := range tasks {
		text, err := c.Value(t.Item.HostID, t.Item.Key, now)
		if err != nil {
			results[i] = poller.Result{Outcome: poller.NotSupported, Text: []byte(err.Error())}
			continue
		}
		results[i] = poller.Result{Outcome: poller.Value, Text: []byte(text)}
	}
}

// errKey says that a key names nothing that is known.
var errKey = errors.New("not an internal item that this server knows")

// Value answers one key for a host.
func (c *Checker) Value(host model.HostID, key string, now time.Time) (string, error) {
	name, params := expr.SplitKey(key)
	if len(params) == 0 {
		return "", fmt.Errorf("%s: expected a name in brackets", key)
	}
	var text string
	var err error
	switch name {
	case "zabbix":
		text, err = c.zabbix(host, params, now)
	case "tidemark":
		text, err = c.metric(params, now)
	default:
		err = errKey
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	return text, nil
}

// param returns parameter i, or "".
func param(params []string, i int) string {
	if i < len(params) {
		return params[i]
	}
	return ""
}

func whole(n int) (string, error) { return strconv.Itoa(n), nil }

func number(v float64) (string, error) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "", errors.New("there is no value yet")
	}
	return strconv.FormatFloat(v, 'f', -1, 64), nil
}

func (c *Checker) zabbix(host model.HostID, params []string, now time.Time) (string, error) {
	switch params[0] {
	case "boottime":
		return strconv.FormatInt(c.o.Started.Unix(), 10), nil
	case "uptime":
		return whole(int(now.Sub(c.o.Started) / time.Second))
	case "version":
		return c.o.Version, nil
	case "hosts":
		return whole(c.o.Server.Counts().Hosts)
	case "items":
		return whole(c.o.Server.Counts().Items)
	case "items_unsupported":
		return whole(c.o.Server.Counts().Unsupported)
	case "triggers":
		return whole(c.o.Server.Counts().Triggers)
	case "requiredperformance":
		return number(c.o.Server.Counts().Performance)
	case "queue":
		return c.queue(params)
	case "preprocessing_queue", "lld_queue", "discovery_queue", "connector_queue":
		// Only values with slow steps wait to be preprocessed, all others are on their way.
		return c.sum(now, "tidemark_"+map[string]string{
			"preprocessing_queue": "preproc", "lld_queue": "discovery", "discovery_queue": "networkdiscovery",
			"connector_queue": "connector",
		}[params[0]]+"_waiting_values")
	case "proxy_history":
		return c.sum(now, "tidemark_proxy_queue_values")
	case "vps":
		return c.sum(now, "tidemark_histsync_values_total")
	case "process":
		return c.process(params, now)
	case "host":
		return c.host(host, params)
	case "cluster":
		if param(params, 1) == "discovery" && param(params, 2) == "nodes" {
			return "[]", nil
		}
	}
	return c.cache(params, now)
}

// queue is zabbix[queue,from,to].
func (c *Checker) queue(params []string) (string, error) {
	var bounds [2]time.Duration
	for i := range bounds {
		text := param(params, i+1)
		if text == "" {
			continue
		}
		d, ok := expr.ParseDuration(text, false)
		if !ok {
			return "", fmt.Errorf("%q is no time; expected a number such as 10m", text)
		}
		bounds[i] = d
	}
	if bounds[1] != 0 && bounds[1] <= bounds[0] {
		return "", fmt.Errorf("expected a second time above %s", bounds[0])
	}
	return whole(c.o.Server.Queue(bounds[0], bounds[1]))
}

// host is zabbix[host,…].
func (c *Checker) host(id model.HostID, params []string) (string, error) {
	h, ok := c.o.Server.Host(id)
	if !ok {
		return "", errors.New("the host is not known")
	}
	switch what, third := param(params, 1), param(params, 2); {
	case what == "" && third == "items":
		return whole(h.Items)
	case what == "" && third == "items_unsupported":
		return whole(h.Unsupported)
	case what == "" && third == "maintenance":
		return whole(h.Maintenance)
	case what == "discovery" && third == "interfaces":
		if h.Interfaces == nil {
			return "[]", nil
		}
		return string(h.Interfaces), nil
	case third == "available":
		switch what {
		case "agent", "snmp", "ipmi", "jmx", "active_agent":
			return whole(c.o.Server.Available(id, what))
		}
	}
	return "", errKey
}

// metrics returns the server's metrics, at most pageAge old.
func (c *Checker) metrics(now time.Time) (*exposition.Page, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.page != nil && now.Sub(c.pageAt) < pageAge {
		return c.page, nil
	}
	var text bytes.Buffer
	c.o.Metrics.WritePrometheus(&text)
	page, err := exposition.Parse(text.Bytes())
	if err != nil {
		return nil, fmt.Errorf("read the server's metrics: %w", err)
	}
	c.page, c.pageAt = page, now
	if n := len(c.samples); n == 0 || now.Sub(c.samples[n-1].at) >= sampleEvery {
		if n >= maxSamples {
			c.samples = append(c.samples[:0], c.samples[1:]...)
		}
		c.samples = append(c.samples, c.sampled(page, now))
	}
	return page, nil
}

// metric is tidemark[pattern] and tidemark[pattern,function]: a metric of the server, with or without tidemark_ before its name.
func (c *Checker) metric(params []string, now time.Time) (string, error) {
	name := params[0]
	if len(name) < 9 || name[:9] != "tidemark_" {
		name = "tidemark_" + name
	}
	function := param(params, 1)
	pattern, err := exposition.ParsePattern(name)
	if err != nil {
		return "", err
	}
	page, err := c.metrics(now)
	if err != nil {
		return "", err
	}
	found, err := page.Select(pattern)
	if err != nil {
		return "", err
	}
	if len(found) == 0 || function == "" && len(found) > 1 {
		return "", fmt.Errorf("%d metrics match; expected one, or sum, min, max, avg or count as second parameter", len(found))
	}
	low, high, sum := math.Inf(1), math.Inf(-1), 0.0
	for _, i := range found {
		v, err := exposition.ParseValue(page.Samples[i].Value)
		if err != nil {
			return "", err
		}
		low, high, sum = min(low, v), max(high, v), sum+v
	}
	switch function {
	case "", "sum":
		return number(sum)
	case "min":
		return number(low)
	case "max":
		return number(high)
	case "avg":
		return number(sum / float64(len(found)))
	case "count":
		return whole(len(found))
	}
	return "", fmt.Errorf("%q is no function; expected sum, min, max, avg or count", function)
}

// value adds the metrics of some names up; a name that is not there counts as 0.
func value(page *exposition.Page, names ...string) float64 {
	sum := 0.0
	for _, name := range names {
		pattern, err := exposition.ParsePattern(name)
		if err != nil {
			continue
		}
		found, _ := page.Select(pattern)
		for _, i := range found {
			if v, err := exposition.ParseValue(page.Samples[i].Value); err == nil {
				sum += v
			}
		}
	}
	return sum
}

func (c *Checker) sum(now time.Time, names ...string) (string, error) {
	page, err := c.metrics(now)
	if err != nil {
		return "", err
	}
	return number(value(page, names...))
}

package scrape

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"net/url"
	"strings"
	"sync"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"tidemark/collect/series"
	"tidemark/config"
)

// hostLabel, set by relabelling, names the host that gets a target's series.
const hostLabel = "__tidemark_host__"

// target is a place that is asked.
type target struct {
	job    *job
	id     string
	url    string
	shown  string
	labels labels.Labels
	host   series.Host
	offset uint64
	stop   context.CancelFunc
	cache  cache
	// line is how the target is asked; nil for one that is encrypted.
	line *line

	mu   sync.Mutex
	last Target
}

// newTarget gives an address the labels of its group and relabels them; nil when relabelling drops it.
func (j *job) newTarget(source, address string, group map[string]string) (*target, error) {
	b := labels.NewBuilder(labels.EmptyLabels())
	set := func(name, value string) {
		if b.Get(name) == "" {
			b.Set(name, value)
		}
	}
	for name, value := range group {
		b.Set(name, value)
	}
	b.Set("__address__", address)
	set("job", j.config.JobName)
	set("__scheme__", j.config.Scheme)
	set("__metrics_path__", j.config.MetricsPath)
	for name, values := range j.config.Params {
		if len(values) > 0 {
			set("__param_"+name, values[0])
		}
	}
	if !relabel.ProcessBuilder(b, j.config.Relabel...) {
		return nil, nil //nolint:nilnil // dropped, and nothing is wrong
	}
	at, err := j.address(b)
	if err != nil {
		return nil, fmt.Errorf("%s: target %q: %w", source, address, err)
	}
	set("instance", b.Get("__address__"))
	host := series.HostOf(b.Get("job"), b.Get("instance"))
	if name := b.Get(hostLabel); name != "" {
		host = series.Host{Name: series.HostName(name), Visible: name}
	}
	b.Range(func(l labels.Label) {
		if strings.HasPrefix(l.Name, "__") {
			b.Del(l.Name)
		}
	})
	t := &target{job: j, url: at.String(), shown: at.Redacted(), labels: b.Labels(), host: host}
	t.id = t.labels.String() + " " + t.url + " " + host.Name
	h := fnv.New64a()
	_, _ = h.Write([]byte(t.id)) // never fails
	t.offset = h.Sum64()
	t.cache.entries = map[string]*entry{}
	if at.Scheme == "http" && at.User == nil {
		t.line = &line{dialer: j.client.dialer, address: net.JoinHostPort(at.Hostname(), cmp.Or(at.Port(), "80"))}
	}
	t.last = Target{URL: t.shown, Labels: t.labels.Map(), Health: "unknown", Interval: j.config.Interval, IntervalS: j.config.Interval.Seconds()}
	return t, nil
}

// address makes the URL of a target from its labels.
func (j *job) address(b *labels.Builder) (*url.URL, error) {
	if err := (config.ScrapeGroup{Targets: []string{b.Get("__address__")}}).Check(); err != nil {
		return nil, err
	}
	scheme := b.Get("__scheme__")
	if scheme != "http" && scheme != "https" {
		return nil, fmt.Errorf("found the scheme %.40q; expected http or https", scheme)
	}
	params := url.Values{}
	for name, values := range j.config.Params {
		params[name] = append([]string{}, values...)
	}
	b.Range(func(l labels.Label) {
		name, ok := strings.CutPrefix(l.Name, "__param_")
		switch {
		case !ok:
		case len(params[name]) > 0:
			params[name][0] = l.Value
		default:
			params[name] = []string{l.Value}
		}
	})
	u, err := url.Parse(scheme + "://" + b.Get("__address__"))
	if err != nil {
		return nil, err
	}
	path := b.Get("__metrics_path__")
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	u.Path, u.RawQuery = path, params.Encode()
	return u, nil
}

func (t *target) status() Target {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

package proxy

import (
	"io"
	"net/http"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/api"
)

// State is how a proxy is doing.
type State struct {
	Name   string `json:"name"`
	Server string `json:"server"`
	// Passive is set for a proxy that the server asks; Server is whence it may.
	// Connected is whether the server answered last time, Failure why not, FailingSince since when, AnsweredAt when it last did; times are Unix
	// milliseconds, zero for never.
	Passive      bool   `json:"passive,omitempty"`
	Connected    bool   `json:"connected"`
	Failure      string `json:"failure,omitempty"`
	FailingSince int64  `json:"failing_since,omitempty"`
	AnsweredAt   int64  `json:"answered_at,omitempty"`
	// UploadDisabled is set while the server asks the proxy to keep its values.
	UploadDisabled bool `json:"upload_disabled"`
	// Hosts and Items are those of the configuration, which was asked for at ConfiguredAt.
	Hosts        int   `json:"hosts"`
	Items        int   `json:"items"`
	ConfiguredAt int64 `json:"configured_at,omitempty"`
	// Waiting are the values that the server does not have, since OldestAt; QueueBytes of QueueLimitBytes are taken.
	Waiting         int   `json:"waiting_values"`
	OldestAt        int64 `json:"oldest_at,omitempty"`
	QueueBytes      int64 `json:"queue_bytes"`
	QueueLimitBytes int64 `json:"queue_limit_bytes"`
	// Dropped are the values that were given up since the start, the last ones at DroppedAt for DropReason.
	Dropped    int    `json:"dropped_values"`
	DroppedAt  int64  `json:"dropped_at,omitempty"`
	DropReason string `json:"drop_reason,omitempty"`
	// Problems say what is wrong, in words.
	Problems []string `json:"problems"`
}

// quietServer is for how long the server of a passive proxy may not ask before that is a problem.
const quietServer = 2 * time.Minute

const milli = int64(1e6)

// State returns how the proxy is doing.
func (p *Proxy) State() State {
	c, q := p.sender.state(), p.queue.State()
	_, configured := p.configuration.state()
	snapshot := p.cache.Snapshot()
	s := State{
		Name: p.o.Name, Server: p.o.Server, Passive: p.o.Passive, Connected: c.Failure == "" && c.AnsweredAt > 0, Failure: c.Failure, FailingSince: c.FailingSince / milli, AnsweredAt: c.AnsweredAt / milli,
		UploadDisabled: c.Refused, Hosts: snapshot.HostCount(), Items: snapshot.ItemCount(), ConfiguredAt: configured / milli,
		Waiting: q.Values, OldestAt: q.OldestAt / milli, QueueBytes: q.Bytes, QueueLimitBytes: q.LimitBytes,
		Dropped: q.Dropped.Values, DroppedAt: q.Dropped.At / milli, DropReason: q.Dropped.Reason, Problems: []string{},
	}
	if c.Failure != "" {
		s.Problems = append(s.Problems, "The server does not take values: "+c.Failure)
	}
	if since := time.Since(time.Unix(0, max(c.AnsweredAt, p.started.UnixNano()))); p.o.Passive && since > quietServer {
		s.Connected = false
		s.Problems = append(s.Problems, "The server has not asked for values for "+since.Round(time.Second).String()+
			": is the proxy known there with the address of this machine (tidemark proxies add NAME --address HOST:PORT), and does proxy.server name the address that the server has?")
	}
	if c.Refused {
		s.Problems = append(s.Problems, "The server asks the proxy to keep its values, because its history cache is nearly full.")
	}
	if s.Hosts == 0 {
		s.Problems = append(s.Problems, "No hosts: assign some to this proxy at the server (tidemark proxies assign HOST "+p.o.Name+").")
	}
	if s.Dropped > 0 {
		s.Problems = append(s.Problems, "Values were dropped: "+s.DropReason+". Give the queue more room (proxy.buffer).")
	} else if q.Bytes > q.LimitBytes/10*8 {
		s.Problems = append(s.Problems, "The queue is filled to more than 80 %; when it is full the oldest values are dropped. Give it more room (proxy.buffer), or bring the server back.")
	}
	return s
}

// handler serves what others may know of the proxy: nothing that it collects.
func (p *Proxy) handler() http.Handler {
	get := func(pattern string, h http.Handler) api.Route {
		return api.Route{Method: http.MethodGet, Pattern: pattern, Permission: api.Public, Handler: h}
	}
	healthy := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	routes := []api.Route{
		get("/metrics", http.HandlerFunc(p.writeMetrics)), get("/-/healthy", healthy), get("/-/ready", healthy),
		get("/api/state", api.JSON(func(*http.Request) (any, error) { return p.State(), nil })),
	}
	return api.NewHandler(routes, http.NotFoundHandler(), api.Options{Logger: p.logger, Metrics: p.metrics})
}

func (p *Proxy) writeMetrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	p.metrics.WritePrometheus(w)
	metrics.WriteProcessMetrics(w)
}

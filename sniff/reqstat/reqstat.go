// Package reqstat keeps request statistics: per shape, per command and namespace, per client, for one instance each.
//
// A table gathers until it is drained; a live view drains it each second, a report once at its end. It holds a bounded number of shapes and
// clients; what finds no room is counted under "other".
package reqstat

import (
	"cmp"
	"slices"

	"tidemark/sniff/flow"
	"tidemark/sniff/pair"
	"tidemark/sniff/shape"
	"tidemark/wire/sketch"
)

// ErrorCode is an error's number and how often it came.
type ErrorCode struct {
	Code  int32
	Count uint64
}

// maxErrorCodes bounds the different codes per shape; others count under code -1.
const maxErrorCodes = 32

// Statistics are the totals of one thing over one interval.
type Statistics struct {
	Requests, Errors, Unacknowledged, Replies uint64
	// TimeNanos is the time spent: the sum of the latencies. Requests that wait on purpose add nothing.
	TimeNanos uint64
	// RequestBytes and ReplyBytes are wire message lengths.
	RequestBytes, ReplyBytes uint64
	// Documents returned or changed, as far as the replies say it.
	Documents uint64
}

// ShapeStatistics are those of one shape.
type ShapeStatistics struct {
	Shape *shape.Shape
	Statistics
	// Latency is the distribution of the latencies.
	Latency sketch.Sketch
	// Codes are the errors by number.
	Codes []ErrorCode
	// FurtherRequests are getMores that went on with the shape's cursors; FurtherNanos and FurtherBytes are their own time and bytes,
	// which the totals include.
	FurtherRequests, FurtherNanos, FurtherBytes uint64
	// touched is set when something was counted since the last drain.
	touched bool
}

// Command names a command on a namespace.
type Command struct{ Namespace, Name string }

// Client names a client: application and address.
type Client struct {
	Application string
	Address     flow.Endpoint // port 0
}

// Instance is one server.
type Instance struct {
	Server flow.Endpoint
	// Total counts every request that is load.
	Total Statistics
	// Latency is the distribution over all of them.
	Latency  sketch.Sketch
	Shapes   map[*shape.Shape]*ShapeStatistics
	Commands map[Command]*Statistics
	Clients  map[Client]*Statistics
	// Monitoring are hello and heartbeats, Cluster what members send each other, Waiting the waits of tailable cursors.
	Monitoring, Cluster, Waiting Statistics

	last *ShapeStatistics
}

const (
	maxInstances = 256
	maxCommands  = 10_000
	maxClients   = 5_000
	otherName    = "other"
)

// Table keeps the statistics of all instances. It belongs to one goroutine.
type Table struct {
	instances map[flow.Endpoint]*Instance
	last      *Instance
	// Overflow counts requests of instances that found no room.
	Overflow uint64
}

// New returns an empty table.
func New() *Table { return &Table{instances: map[flow.Endpoint]*Instance{}} }

// Instances returns all instances, sorted by address and port.
func (t *Table) Instances() []*Instance {
	out := make([]*Instance, 0, len(t.instances))
	for _, i := range t.instances {
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b *Instance) int {
		if c := slices.Compare(a.Server.Address[:], b.Server.Address[:]); c != 0 {
			return c
		}
		return cmp.Compare(a.Server.Port, b.Server.Port)
	})
	return out
}

func (t *Table) instance(server flow.Endpoint) *Instance {
	if t.last != nil && t.last.Server == server {
		return t.last
	}
	i := t.instances[server]
	if i == nil {
		if len(t.instances) >= maxInstances {
			return nil
		}
		i = &Instance{
			Server: server, Shapes: map[*shape.Shape]*ShapeStatistics{}, Commands: map[Command]*Statistics{}, Clients: map[Client]*Statistics{},
		}
		t.instances[server] = i
	}
	t.last = i
	return i
}

// of returns the statistics of a shape.
func (i *Instance) of(s *shape.Shape) *ShapeStatistics {
	if i.last != nil && i.last.Shape == s {
		return i.last
	}
	st := i.Shapes[s]
	if st == nil {
		st = &ShapeStatistics{Shape: s}
		i.Shapes[s] = st
	}
	st.touched = true
	i.last = st
	return st
}

// entry returns the entry of a bounded table; when it is full, that of other.
func entry[K comparable](m map[K]*Statistics, key, other K, limit int) *Statistics {
	if s := m[key]; s != nil {
		return s
	}
	if len(m) >= limit {
		key = other
		if s := m[key]; s != nil {
			return s
		}
	}
	s := &Statistics{}
	m[key] = s
	return s
}

func (i *Instance) command(r *pair.Request) *Statistics {
	namespace := r.Database
	if r.Collection != "" {
		namespace = r.Database + "." + r.Collection
	}
	return entry(i.Commands, Command{namespace, r.Command}, Command{"", otherName}, maxCommands)
}

func (i *Instance) client(r *pair.Request) *Statistics {
	return entry(i.Clients, Client{r.Application, flow.Endpoint{Address: r.Client.Address}}, Client{Application: otherName}, maxClients)
}

// Request implements pair.Sink.
func (t *Table) Request(r *pair.Request) {
	i := t.instance(r.Server)
	if i == nil {
		t.Overflow++
		return
	}
	switch {
	case r.Monitoring:
		i.Monitoring.request(r, uint64(r.Bytes))
		return
	case r.Cluster:
		i.Cluster.request(r, uint64(r.Bytes))
		return
	case r.Waits:
		i.Waiting.request(r, uint64(r.Bytes))
	}
	i.command(r).request(r, uint64(r.Bytes))
	i.client(r).request(r, uint64(r.Bytes))
	i.Total.request(r, uint64(r.Bytes))
	total := count(r.Statements)
	for _, s := range r.Statements {
		st := i.of(s.Shape)
		st.touched = true
		st.Requests += uint64(s.Count)
		st.RequestBytes += share(uint64(r.Bytes), s.Count, total)
		if r.Unacknowledged {
			st.Unacknowledged += uint64(s.Count)
		}
		if r.Command == "getMore" {
			st.FurtherRequests++
		}
	}
}

func (s *Statistics) request(r *pair.Request, bytes uint64) {
	s.Requests++
	s.RequestBytes += bytes
	if r.Unacknowledged {
		s.Unacknowledged++
	}
}

// Reply implements pair.Sink.
func (t *Table) Reply(r *pair.Request, reply *pair.Reply) {
	i := t.instance(r.Server)
	if i == nil {
		return
	}
	latency := uint64(reply.LatencyNanos)
	if r.Waits || reply.Further {
		latency = 0
	}
	switch {
	case r.Monitoring:
		i.Monitoring.reply(reply, 0)
		return
	case r.Cluster:
		i.Cluster.reply(reply, latency)
		return
	case r.Waits:
		i.Waiting.reply(reply, uint64(reply.LatencyNanos))
	}
	i.command(r).reply(reply, latency)
	i.client(r).reply(reply, latency)
	i.Total.reply(reply, latency)
	timed := !r.Waits && !reply.Further
	if timed {
		i.Latency.Add(reply.LatencyNanos)
	}
	total := count(r.Statements)
	for _, s := range r.Statements {
		i.of(s.Shape).reply(r, reply, s.Count, total, timed)
	}
}

func (s *Statistics) reply(reply *pair.Reply, latency uint64) {
	if !reply.Further {
		s.Replies++
	}
	s.ReplyBytes += uint64(reply.Bytes)
	s.TimeNanos += latency
	if reply.Failed {
		s.Errors++
	}
	if reply.Documents > 0 {
		s.Documents += uint64(reply.Documents)
	}
}

// reply counts a reply for one of the statements of its request; time and bytes are shared by their number.
func (st *ShapeStatistics) reply(r *pair.Request, reply *pair.Reply, n, total int, timed bool) {
	st.touched = true
	if !reply.Further {
		st.Replies++
	}
	bytes := share(uint64(reply.Bytes), n, total)
	st.ReplyBytes += bytes
	if timed {
		nanos := share(uint64(reply.LatencyNanos), n, total)
		st.TimeNanos += nanos
		st.Latency.Add(reply.LatencyNanos)
		if r.Command == "getMore" {
			st.FurtherNanos += nanos
			st.FurtherBytes += bytes
		}
	}
	if reply.Failed {
		st.Errors++
		st.code(reply.Code)
	}
	if reply.Documents > 0 {
		st.Documents += share(uint64(reply.Documents), n, total)
	}
}

// code counts an error number.
func (st *ShapeStatistics) code(code int32) {
	for i := range st.Codes {
		if st.Codes[i].Code == code {
			st.Codes[i].Count++
			return
		}
	}
	if len(st.Codes) >= maxErrorCodes {
		code = -1
		if st.Codes[len(st.Codes)-1].Code == code {
			st.Codes[len(st.Codes)-1].Count++
			return
		}
	}
	st.Codes = append(st.Codes, ErrorCode{Code: code, Count: 1})
}

func count(statements []shape.Statement) int {
	n := 0
	for _, s := range statements {
		n += s.Count
	}
	return n
}

// share divides an amount among statements by their number.
func share(amount uint64, n, total int) uint64 {
	if n == total || total == 0 {
		return amount
	}
	return amount * uint64(n) / uint64(total)
}

// Add adds o's totals.
func (s *Statistics) Add(o *Statistics) {
	s.Requests += o.Requests
	s.Errors += o.Errors
	s.Unacknowledged += o.Unacknowledged
	s.Replies += o.Replies
	s.TimeNanos += o.TimeNanos
	s.RequestBytes += o.RequestBytes
	s.ReplyBytes += o.ReplyBytes
	s.Documents += o.Documents
}

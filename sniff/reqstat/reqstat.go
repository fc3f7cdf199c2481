// Package reqstat keeps request statistics: per shape, per command and namespace, per client, for one instance each.
//
// A table gathers until it is drained; a live view drains it each second, a report reads it once at its end. It holds a bounded number of
// instances, shapes, commands and clients; what finds no room is counted under "other".
package reqstat

import (
	"cmp"
	"math"
	"slices"

	"tidemark/sniff/flow"
	"tidemark/sniff/shape"
	"tidemark/wire/sketch"
)

// ErrorCode is an error's number and how often it came.
type ErrorCode struct {
	Code  int32
	Count uint64
}

// maxErrorCodes bounds the different codes per shape; others count under OtherCode.
const maxErrorCodes = 32

// OtherCode stands for the error numbers that found no room of their own.
const OtherCode = -1

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

// entry is the statistics of a command or a client. It stays in place while it is in use, so that connections and shapes may point to it.
type entry struct {
	Statistics
	// latency is the distribution of a client's latencies; nil for commands, and for clients beyond maxClientLatencies.
	latency  *sketch.Sketch
	instance *Instance
	// idle counts the drains since something was counted; a dead entry is in no table any more.
	idle int
	dead bool
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

	instance *Instance
	command  *entry // that of the shape's command
	touched  bool   // since the last drain
	// load is the time spent, of which each drain takes a part away; it is as of drain number at.
	load float64
	at   uint64
}

// Command names a command on a collection; Collection is empty where it has none.
type Command struct{ Database, Collection, Name string }

// Namespace returns "database.collection", or the bare database.
func (c Command) Namespace() string {
	if c.Collection == "" {
		return c.Database
	}
	return c.Database + "." + c.Collection
}

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
	Latency sketch.Sketch
	Shapes  map[*shape.Shape]*ShapeStatistics
	// Monitoring are hello and heartbeats, Cluster what members send each other, Waiting the waits of tailable cursors.
	Monitoring, Cluster, Waiting Statistics

	commands map[Command]*entry
	clients  map[Client]*entry
	touched  []*ShapeStatistics
	other    *shape.Shape
	drains   uint64
	// sketched is how many clients have latencies.
	sketched int
}

const (
	maxInstances = 256
	maxCommands  = 10_000
	maxClients   = 5_000
	// maxClientLatencies bounds the clients of an instance whose latencies are kept, the first that come.
	maxClientLatencies = 200
	// maxIdle is after how many drains without a request a command or client is forgotten.
	maxIdle = 600
	// loadKept is the part of a shape's load that a drain keeps: after a hundred seconds a third is left.
	loadKept = 0.99
)

// OtherName stands for the commands and clients that found no room of their own.
const OtherName = "other"

// Table keeps the statistics of all instances. It belongs to one goroutine.
type Table struct {
	instances map[flow.Endpoint]*Instance
	last      *Instance
	other     *shape.Shape
	// Overflow counts requests of instances that found no room.
	Overflow uint64
}

// New returns an empty table; other is the shape under which forgotten ones count.
func New(other *shape.Shape) *Table {
	return &Table{instances: map[flow.Endpoint]*Instance{}, other: other}
}

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

// Touched are the shapes for which something was counted since the last drain. The slice is valid until the next one.
func (i *Instance) Touched() []*ShapeStatistics { return i.touched }

// Commands calls fn for every command that was met.
func (i *Instance) Commands(fn func(Command, *Statistics)) {
	for k, e := range i.commands {
		fn(k, &e.Statistics)
	}
}

// Clients calls fn for every client that was met, with its latencies, nil where they are not kept.
func (i *Instance) Clients(fn func(Client, *Statistics, *sketch.Sketch)) {
	for k, e := range i.clients {
		fn(k, &e.Statistics, e.latency)
	}
}

// Drain hands every instance to fn and empties it for the next interval.
func (t *Table) Drain(fn func(*Instance)) {
	for _, i := range t.Instances() {
		fn(i)
		i.drain()
	}
}

func (i *Instance) drain() {
	i.drains++
	for _, s := range i.touched {
		s.load = s.load*math.Pow(loadKept, float64(i.drains-s.at)) + float64(s.TimeNanos)
		s.at = i.drains
		s.Latency.Reset()
		*s = ShapeStatistics{Shape: s.Shape, instance: i, command: s.command, load: s.load, at: s.at, Codes: s.Codes[:0], Latency: s.Latency}
	}
	i.touched = i.touched[:0]
	i.Total, i.Monitoring, i.Cluster, i.Waiting = Statistics{}, Statistics{}, Statistics{}, Statistics{}
	i.Latency.Reset()
	drainEntries(i.commands)
	drainEntries(i.clients)
}

// drainEntries empties the entries and forgets those that were idle for long.
func drainEntries[K comparable](m map[K]*entry) {
	for k, e := range m {
		if e.Statistics != (Statistics{}) {
			e.Statistics, e.idle = Statistics{}, 0
			if e.latency != nil {
				e.latency.Reset()
			}
			continue
		}
		if e.idle++; e.idle > maxIdle {
			e.dead = true
			if e.latency != nil {
				e.instance.sketched--
			}
			delete(m, k)
		}
	}
}

// Evict takes the shapes with the least load out of the tables until at most keep are left, and returns them. Call it after a drain.
func (t *Table) Evict(keep int) []*shape.Shape {
	loads := map[*shape.Shape]float64{}
	for _, i := range t.instances {
		for s, st := range i.Shapes {
			if s != t.other {
				loads[s] += st.load * math.Pow(loadKept, float64(i.drains-st.at))
			}
		}
	}
	if len(loads) <= keep {
		return nil
	}
	all := make([]*shape.Shape, 0, len(loads))
	for s := range loads {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *shape.Shape) int {
		return cmp.Or(cmp.Compare(loads[a], loads[b]), cmp.Compare(a.Fingerprint, b.Fingerprint))
	})
	all = all[:len(all)-keep]
	for _, s := range all {
		for _, i := range t.instances {
			delete(i.Shapes, s)
		}
		s.Counted = nil
	}
	return all
}

func (t *Table) instance(server *flow.Endpoint) *Instance {
	if t.last != nil && t.last.Server == *server {
		return t.last
	}
	i := t.instances[*server]
	if i == nil {
		if len(t.instances) >= maxInstances {
			return nil
		}
		i = &Instance{
			Server: *server, Shapes: map[*shape.Shape]*ShapeStatistics{}, commands: map[Command]*entry{}, clients: map[Client]*entry{}, other: t.other,
		}
		t.instances[*server] = i
	}
	t.last = i
	return i
}

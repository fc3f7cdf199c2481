package agent

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"time"

	"tidemark/agent/key"
	"tidemark/model"
	"tidemark/sniff"
	"tidemark/sniff/capture"
	"tidemark/wire/zbx"
)

// Mongo says which MongoDB server the agent watches, and how: its traffic, of which the server notices nothing, and its own counters.
type Mongo struct {
	// Interface is a network device, or "any"; empty watches nothing.
	Interface string
	// Ports are those of the servers; none means 27017.
	Ports []uint16
	// Interval is that of the stored statistics; zero means 10 s.
	Interval time.Duration
	// Log is the JSON log file of the server on this machine. Its slow requests are told as sampled ones, for servers whose traffic is encrypted;
	// empty reads none.
	Log string
	// Profiler reads the profilers of the server's databases, where they are on, by the connection of URI.
	Profiler bool
	// DropPrivileges gives up every capability of the process as soon as the capture is open, where the agent can live without.
	DropPrivileges bool
	// URI is the connection string of the server that is asked for its own counters; empty asks none. It appears in no message and no value.
	URI string
	// Plans is how often the server is asked how it answers the dearest shapes; zero asks for none. It needs URI.
	Plans time.Duration
}

func (m Mongo) interval() time.Duration {
	if m.Interval <= 0 {
		return defaultMongoInterval
	}
	return m.Interval
}

const (
	defaultMongoPort     = 27017
	defaultMongoInterval = 10 * time.Second
	// mongoShapes bounds the live shapes. A server takes the items of as many, and of those that lived in the last week, apart from a host's others.
	mongoShapes = 2000
	// maxMongoItems bounds the table of items that were met; beyond it the table begins anew.
	maxMongoItems = 50_000
)

// notWatched stands for the number of connections while the wire is not watched.
const notWatched = -1

// watchMongo watches MongoDB traffic until ctx ends. A device that cannot be opened is told once: the agent's other work goes on.
func (a *Agent) watchMongo(ctx context.Context) {
	m := a.options.Mongo
	ports := m.Ports
	if len(ports) == 0 {
		ports = []uint16{defaultMongoPort}
	}
	ring, err := capture.OpenRing(capture.RingOptions{Interface: m.Interface, Ports: ports})
	if err != nil {
		a.log.Error("MongoDB traffic is not watched", "interface", m.Interface, "error", err)
		return
	}
	defer ring.Close()
	if m.DropPrivileges {
		a.dropPrivileges()
	}
	a.log.Info("MongoDB traffic is being watched", "interface", m.Interface, "ports", ports)
	if err := a.sniffMongo(ctx, ring, ports); err != nil && ctx.Err() == nil {
		a.log.Error("MongoDB traffic is no longer watched", "interface", m.Interface, "error", err)
	}
}

// sniffMongo turns the frames of a source into rows until it ends or ctx does.
func (a *Agent) sniffMongo(ctx context.Context, source capture.Source, ports []uint16) error {
	interval := a.options.Mongo.interval()
	defer a.mongoFlows.Store(notWatched)
	s, err := sniff.New(sniff.Options{Ports: ports, Shapes: mongoShapes})
	if err != nil {
		return fmt.Errorf("watch MongoDB traffic: %w", err)
	}
	w := mongoWatch{agent: a, items: sniff.NewItems(interval), known: map[*sniff.Item]*item{}}
	w.items.Spent = a.plans.spent
	return s.Run(ctx, source, sniff.RunOptions{Interval: interval, Tick: func(_, to int64) { w.take(s, to) }})
}

// mongoWatch makes rows of statistics. It belongs to the goroutine that sniffs.
type mongoWatch struct {
	agent *Agent
	items *sniff.Items
	known map[*sniff.Item]*item
}

// take drains one interval.
func (w *mongoWatch) take(s *sniff.Sniffer, to int64) {
	w.agent.mongoFlows.Store(int64(s.Counters().Flows))
	w.send(func(put func(sniff.ItemValue)) { w.items.Take(s, to, put) })
}

// send makes rows of what take hands to it. Only a Tidemark server takes items that the agent declares; for others the interval is dropped.
func (w *mongoWatch) send(take func(put func(sniff.ItemValue))) {
	wanted := w.agent.state.get().Tidemark
	var rows []row
	take(func(v sniff.ItemValue) {
		if wanted {
			rows = append(rows, row{at: v.At, item: w.item(v.Item), value: mongoValue(v)})
		}
	})
	if len(rows) > 0 {
		w.agent.buffer.put(rows)
		w.agent.wake()
	}
}

// mongoValue is a statistic as it is sent; binary ones travel in base64.
func mongoValue(v sniff.ItemValue) key.Value {
	switch v.Item.Type {
	case model.Float:
		return key.Float(math.Float64frombits(v.Bits))
	case model.Binary:
		return key.Text(base64.StdEncoding.EncodeToString(v.Bytes))
	}
	return key.Uint(v.Bits)
}

func (w *mongoWatch) item(of *sniff.Item) *item {
	if known := w.known[of]; known != nil {
		return known
	}
	if len(w.known) >= maxMongoItems {
		clear(w.known)
	}
	made := &item{key: of.Key, declaration: &zbx.Declaration{
		Key: of.Key, Name: of.Name, Units: of.Units, Type: of.Type, Interval: of.Interval, Labels: of.Labels,
	}}
	w.known[of] = made
	return made
}

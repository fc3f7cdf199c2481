// Package mongodb asks a MongoDB server how it is: its own counters, its collections and indexes, its replica set.
//
// It needs nothing but the role clusterMonitor, changes nothing, and reads no document: what it asks for are numbers. What a server does not have,
// or does not allow, is left out with one message. Reading the answers (decode….go) is apart from asking for them (group.go).
package mongodb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"tidemark/model"
	"tidemark/sniff"
)

// Options say which server is asked.
type Options struct {
	// URI is the connection string of one server, with user and password where it needs them. It is never logged, and part of no value.
	URI string
	// Interval is how often Collect is called; zero means 10 s. What changes slowly is asked for once a minute at most.
	Interval time.Duration
	// Profile gets the requests that the profilers of the databases tell of, on Collect's goroutine, valid during the call; nil reads no profiler.
	Profile func(Verdict, *sniff.Told)
	// Logger gets the messages; nil discards them.
	Logger *slog.Logger
}

// Item is an item of the agent's host.
type Item struct {
	Key, Name, Units string
	// Type is Uint, Float or Text.
	Type     model.ValueType
	Interval time.Duration
	// Labels are sorted by name.
	Labels model.Labels
}

// Value is one value of an item. The item stays the same from round to round, so that it may be kept and compared.
type Value struct {
	Item *Item
	// Bits is an integer, or math.Float64bits; Text is what a text item holds.
	Bits uint64
	Text string
}

const (
	// Application is how the monitor's connections call themselves to the server.
	Application = "tidemark-agent"

	defaultInterval = 10 * time.Second
	slowInterval    = time.Minute
	// commandTimeout bounds one command, roundTimeout all of one round.
	commandTimeout = 5 * time.Second
	roundTimeout   = 30 * time.Second
	// retryAfter is when a part that was left out is tried again.
	retryAfter = 10 * time.Minute

	maxItems = 10_000
)

// Monitor asks one server. Open makes one; it belongs to one goroutine.
type Monitor struct {
	options  Options
	instance string
	secrets  []string
	client   *mongo.Client
	log      *slog.Logger

	groups      []*group
	collections []namespace
	chosen      time.Time // when the collections were
	crowded     bool      // not all of them have room
	listed      bool      // they were listed by name, because top does not tell
	items       map[string]*Item
	up          bool
	known       bool // whether the server was ever asked
	connections uint64
	profile     profile
	refused     uint64 // items for which there was no room
}

// Open checks the options and begins to connect; it does not wait for the server. Its errors do not hold the URI.
func Open(o Options) (*Monitor, error) {
	if o.Interval <= 0 {
		o.Interval = defaultInterval
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	a, err := parseURI(o.URI)
	if err != nil {
		return nil, err
	}
	m := &Monitor{options: o, instance: a.instance, secrets: a.secrets, log: o.Logger, items: map[string]*Item{}}
	m.groups = newGroups()
	if o.Profile != nil {
		m.groups = append(m.groups, &group{name: "profiler", ask: (*Monitor).askProfiler})
	}
	settings := options.Client().ApplyURI(o.URI).SetAppName(Application).SetDirect(true).
		SetMaxPoolSize(2).SetMinPoolSize(0).SetMaxConnecting(1).SetServerMonitoringMode("poll").
		SetConnectTimeout(commandTimeout).SetServerSelectionTimeout(commandTimeout).
		SetRetryReads(false).SetRetryWrites(false).SetLoggerOptions(nil)
	if err := settings.Validate(); err != nil {
		return nil, fmt.Errorf("MongoDB connection string: %s", m.scrub(err.Error()))
	}
	if m.client, err = mongo.Connect(settings); err != nil {
		return nil, fmt.Errorf("MongoDB connection string: %s", m.scrub(err.Error()))
	}
	return m, nil
}

// Instance is the server as its items name it: the address of the connection string.
func (m *Monitor) Instance() string { return m.instance }

// Connections is how many connections the server said it has, in the last round; zero while it does not answer.
func (m *Monitor) Connections() uint64 { return m.connections }

// Unseen hands on how many connections a watched network does not show.
func (m *Monitor) Unseen(n uint64, put func(Value)) {
	m.put(put, whole("connections", "unseen", "Connections that the watched network does not show", "", n, false))
}

// Close ends the connections.
func (m *Monitor) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := m.client.Disconnect(ctx); err != nil && !errors.Is(err, mongo.ErrClientDisconnected) {
		return fmt.Errorf("close the connection to MongoDB: %s", m.scrub(err.Error()))
	}
	return nil
}

// Collect asks the server once, and hands each value to put.
func (m *Monitor) Collect(ctx context.Context, now time.Time, put func(Value)) {
	round, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	began := time.Now()
	up := true
	for _, g := range m.groups {
		if g.due(now, m.options.Interval) && up {
			up = m.ask(round, g, now, put)
		}
	}
	if ctx.Err() != nil {
		return
	}
	if !up {
		m.connections = 0
	}
	m.say(up)
	skipped := uint64(0)
	for _, g := range m.groups {
		if g.reason != "" {
			skipped++
		}
	}
	alive := uint64(0)
	if up {
		alive = 1
	}
	m.put(put, whole("self", "up", "The server answers", "", alive, false))
	m.put(put, whole("self", "skipped", "Parts that the server does not have or does not allow", "", skipped, false))
	m.put(put, fraction("self", "time", "Time that asking took", "s", time.Since(began).Seconds(), false))
	if m.refused > 0 {
		m.put(put, whole("self", "refused", "Items beyond the limit", "", m.refused, false))
	}
}

// say logs when the server goes or comes; the reason was logged where it was met.
func (m *Monitor) say(up bool) {
	if up && !m.up {
		m.log.Info("MongoDB is being asked for its own counters", "instance", m.instance)
	}
	m.up, m.known = up, true
}

// put makes the value of a sample.
func (m *Monitor) put(to func(Value), s sample) {
	text := s.key(m.instance)
	item := m.items[text]
	if item == nil {
		if len(m.items) >= maxItems {
			m.refused++
			return
		}
		interval := m.options.Interval
		if s.slow {
			interval = max(interval, slowInterval)
		}
		item = &Item{Key: text, Name: s.name(), Units: s.units, Type: s.kind, Interval: interval, Labels: s.labels(m.instance)}
		m.items[text] = item
	}
	to(Value{Item: item, Bits: s.bits, Text: s.text})
}

// run runs one command and returns its answer.
func (m *Monitor) run(ctx context.Context, database string, command bson.D) (bson.Raw, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return m.client.Database(database).RunCommand(ctx, command).Raw()
}

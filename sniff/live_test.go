package sniff

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"tidemark/sniff/capture"
)

// driverEvents are what the driver says of its own commands.
type driverEvents struct {
	mu       sync.Mutex
	requests map[string][3]uint64
	nanos    map[string]int64
	names    map[int64]string
}

func newDriverEvents() *driverEvents {
	return &driverEvents{requests: map[string][3]uint64{}, nanos: map[string]int64{}, names: map[int64]string{}}
}

func (e *driverEvents) monitor() *event.CommandMonitor {
	return &event.CommandMonitor{
		Started: func(_ context.Context, s *event.CommandStartedEvent) {
			e.mu.Lock()
			defer e.mu.Unlock()
			name := s.DatabaseName
			if c, isText := s.Command.Lookup(s.CommandName).StringValueOK(); isText {
				name += "." + c
			} else if c, isText := s.Command.Lookup("collection").StringValueOK(); isText {
				name += "." + c
			}
			name += " " + s.CommandName
			e.names[s.RequestID] = name
			n := e.requests[name]
			n[0]++
			e.requests[name] = n
		},
		Succeeded: func(_ context.Context, s *event.CommandSucceededEvent) {
			e.ended(s.RequestID, s.Duration, s.Reply.Lookup("writeErrors").Type != 0)
		},
		Failed: func(_ context.Context, s *event.CommandFailedEvent) { e.ended(s.RequestID, s.Duration, true) },
	}
}

func (e *driverEvents) ended(id int64, length time.Duration, failed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	name := e.names[id]
	n := e.requests[name]
	if failed {
		n[1]++
	}
	e.requests[name] = n
	e.nanos[name] += int64(length)
}

// work is what a driver does in the live test.
func work(t *testing.T, uri string, events *driverEvents) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	client, err := driver.Connect(options.Client().ApplyURI(uri).SetMonitor(events.monitor()).SetAppName("live test"))
	if err != nil {
		t.Fatal(err)
	}
	db := client.Database("shop")
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			for i := range 5 {
				if err := db.Collection("users").FindOne(ctx, bson.D{{Key: "name", Value: fmt.Sprint(g, i)}}).Err(); err != nil {
					t.Error(err)
				}
				if _, err := db.Collection("users").InsertOne(ctx, bson.D{{Key: "x", Value: strings.Repeat("y", 100*i)}}); err != nil {
					t.Error(err)
				}
				if _, err := db.Collection("users").UpdateOne(ctx, bson.D{{Key: "x", Value: i}}, bson.D{{Key: "$set", Value: bson.D{{Key: "z", Value: g}}}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := db.Collection("broken").FindOne(ctx, bson.D{}).Err(); err == nil {
		t.Error("the server's error did not arrive")
	}
	if _, err := db.Collection("broken").InsertOne(ctx, bson.D{}); err == nil {
		t.Error("the server's write error did not arrive")
	}
	cursor, err := db.Collection("many").Find(ctx, bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	var all []bson.D
	if err := cursor.All(ctx, &all); err != nil || len(all) != 5 {
		t.Errorf("%d documents, %v", len(all), err)
	}
	if _, err := db.Collection("big").InsertOne(ctx, bson.D{{Key: "x", Value: make([]byte, 300_000)}}); err != nil {
		t.Error(err)
	}
	if err := client.Disconnect(ctx); err != nil {
		t.Error(err)
	}
}

// TestLive lets the official driver talk to a server on loopback, over both families, and compares what the sniffer saw with the driver's own
// events and with the server's count of bytes.
func TestLive(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(address, func(t *testing.T) { liveOn(t, address) })
	}
}

func liveOn(t *testing.T, address string) {
	const delay = 3 * time.Millisecond
	server := newTestServer(t, address, delay)
	ring, err := capture.OpenRing(capture.RingOptions{Interface: "lo", Ports: []uint16{server.port()}, RingBytes: 8 << 20, PollTime: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer ring.Close()
	s, err := New(Options{Ports: []uint16{server.port()}})
	if err != nil {
		t.Fatal(err)
	}
	live := NewLive()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	// The report is made from the sniffer's table, so this test drains into the view only at the end.
	var r Report
	go func() {
		ended <- s.Run(ctx, ring, RunOptions{Interval: time.Hour, Tick: func(from, to int64) {
			r = s.Report()
			live.Take(s, from, to)
		}})
	}()
	events := newDriverEvents()
	work(t, "mongodb://"+server.listener.Addr().String()+"/?directConnection=true", events)
	server.close()
	time.AfterFunc(300*time.Millisecond, cancel) // the last block of the ring comes after its time-out
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	compareLive(t, r, events, server, delay)
	v := live.View(ByLoad, "shop")
	if len(v.Rows) < 6 || v.Load <= 0 {
		t.Errorf("the view has %d rows, load %v", len(v.Rows), v.Load)
	}
}

func compareLive(t *testing.T, r Report, events *driverEvents, server *testServer, delay time.Duration) {
	t.Helper()
	got := counts(r)
	if !maps.Equal(got, events.requests) {
		t.Errorf("the sniffer saw %v, the driver says %v", got, events.requests)
	}
	if len(r.Malformed) > 0 || r.Gaps > 0 || r.Unmatched.Replies > 0 || r.Unmatched.Requests > 0 || len(r.Monitoring) == 0 {
		t.Errorf("malformed %v, gaps %d, unmatched %+v, monitoring %v", r.Malformed, r.Gaps, r.Unmatched, r.Monitoring)
	}
	in, out := map[string]uint64{}, map[string]uint64{}
	for _, c := range r.Commands {
		in[c.Command] += c.RequestBytes
		out[c.Command] += c.ReplyBytes
	}
	for name, n := range server.in {
		if name != "hello" && (in[name] != n || out[name] != server.out[name]) {
			t.Errorf("%s: %d bytes in and %d out, the server counted %d and %d", name, in[name], out[name], n, server.out[name])
		}
	}
	const slack = 50e6 // a busy machine; the driver's own time includes waiting for a processor
	for _, s := range r.Shapes {
		name := s.Namespace + " " + s.Command
		if s.Command == "find" && s.Namespace == "shop.many" || s.P50Millis == 0 {
			continue // counts its getMore too
		}
		driverNanos := float64(events.nanos[name])
		if sniffed := s.TimeMillis * 1e6; sniffed < float64(s.Requests)*float64(delay) || sniffed > driverNanos+slack {
			t.Errorf("%s: %.1f ms for %d requests, the driver measured %.1f ms, the server waits %v", name, s.TimeMillis, s.Requests, driverNanos/1e6, delay)
		}
	}
}

// A view and the metrics of a capture, interval by interval; evicted shapes move to other and nothing is counted twice.
func TestRun_intervals(t *testing.T) {
	w := newWire(t).open()
	for i := range 3000 {
		w.ask(uint32(i), find("users", bson.D{{Key: "k" + letters(i%150), Value: 1}}), ok)
		w.now += 10e6
	}
	s, err := New(Options{Ports: []uint16{27017}, Shapes: 100})
	if err != nil {
		t.Fatal(err)
	}
	live := NewLive()
	ticks := 0
	err = s.Run(context.Background(), &memory{frames: w.frames}, RunOptions{Tick: func(from, to int64) {
		if to <= from || to-from > 1e9 {
			t.Errorf("an interval of %d ns", to-from)
		}
		ticks++
		live.Take(s, from, to)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if ticks < 30 {
		t.Errorf("%d intervals for half a minute", ticks)
	}
	var out bytes.Buffer
	if err := live.WriteMetrics(&out, 20); err != nil {
		t.Fatal(err)
	}
	requests, series := 0, 0
	for line := range strings.Lines(out.String()) {
		var n int
		if strings.HasPrefix(line, "tidemark_mongo_requests_total{") {
			series++
			if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' '):], &n); err != nil {
				t.Fatal(err)
			}
			requests += n
		}
	}
	if requests != 3000 || series > 21 {
		t.Errorf("the metrics count %d requests of 3000 in %d series", requests, series)
	}
	if c := s.Counters(); c.ShapesEvicted == 0 || c.Shapes > 100 {
		t.Errorf("%d shapes, %d evicted, overflow %d", c.Shapes, c.ShapesEvicted, c.ShapeOverflow)
	}
	for _, order := range []Order{ByLoad, ByRate, ByP95, ByErrors, ByBytes} {
		v := live.View(order, "")
		if len(v.Rows) == 0 || len(v.Rows) > 101 || v.Rate == 0 {
			t.Errorf("order %d: %d rows, %v requests per second", order, len(v.Rows), v.Rate)
		}
	}
	row := live.View(ByLoad, "kg").Rows[0]
	if bars := live.Histogram(row.Instance, row.Fingerprint); len(bars) == 0 || row.P95Millis <= 0 {
		t.Errorf("bars %v of %+v", bars, row)
	}
}

// Run ends with its context, also when no frame comes.
func TestRun_ends(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Run(ctx, silent{}, RunOptions{}); err != nil {
		t.Error(err)
	}
	if err := s.Run(context.Background(), broken{}, RunOptions{}); !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
}

type silent struct{}

func (silent) Next(*capture.Frame) error     { return capture.ErrTimeout }
func (silent) Stats() (capture.Stats, error) { return capture.Stats{}, nil }
func (silent) Close() error                  { return nil }

var errBroken = errors.New("broken")

type broken struct{ silent }

func (broken) Next(*capture.Frame) error { return errBroken }

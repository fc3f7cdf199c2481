package reqstat

import (
	"fmt"
	"testing"

	"tidemark/sniff/flow"
	"tidemark/sniff/pair"
	"tidemark/sniff/shape"
	"tidemark/wire/mongo"
	"tidemark/wire/sketch"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// shapes makes n different shapes.
func shapes(t *testing.T, n int) (*shape.Finder, []*shape.Shape) {
	t.Helper()
	f := shape.NewFinder(n, 1)
	var out []*shape.Shape
	for i := range n {
		body, err := bson.Marshal(bson.D{{Key: "find", Value: fmt.Sprint("c", i)}, {Key: "$db", Value: "shop"}})
		if err != nil {
			t.Fatal(err)
		}
		var c shape.Command
		if !f.Find(&mongo.Message{Header: mongo.Header{Op: mongo.OpMsg}, Body: body}, &c) {
			t.Fatal("no command")
		}
		out = append(out, c.Statements[0].Shape)
	}
	return f, out
}

func request(s *shape.Shape, port uint16) *pair.Request {
	return &pair.Request{Peer: &pair.Peer{Server: flow.Endpoint{Port: port}}, Command: s.Command, Database: s.Database, Collection: s.Collection, Statements: s.Single(), Bytes: 100}
}

func TestTable_drain(t *testing.T) {
	f, s := shapes(t, 3)
	table := New(f.Other())
	for range 5 {
		for _, port := range []uint16{1, 2} {
			r := request(s[0], port)
			table.Request(r)
			table.Reply(r, &pair.Reply{LatencyNanos: 2e6, Bytes: 50, Failed: true, Code: 11000, Documents: 3})
		}
	}
	drained := 0
	table.Drain(func(i *Instance) {
		drained++
		st := i.Touched()[0]
		if len(i.Touched()) != 1 || st.Requests != 5 || st.Errors != 5 || st.TimeNanos != 10e6 || st.Documents != 15 || st.Latency.Count != 5 || len(st.Codes) != 1 || st.Codes[0].Count != 5 {
			t.Errorf("server %d: %+v", i.Server.Port, st.Statistics)
		}
		if i.Total.Requests != 5 || i.Latency.Count != 5 {
			t.Errorf("server %d: total %+v", i.Server.Port, i.Total)
		}
	})
	table.Drain(func(i *Instance) {
		if len(i.Touched()) != 0 || i.Total != (Statistics{}) {
			t.Errorf("server %d is not empty after a drain: %+v", i.Server.Port, i.Total)
		}
		i.Commands(func(c Command, st *Statistics) {
			if *st != (Statistics{}) {
				t.Errorf("%v is not empty", c)
			}
		})
	})
	if drained != 2 {
		t.Errorf("%d servers", drained)
	}
}

// The shapes with the least load make room; what still refers to them counts under other.
func TestTable_evict(t *testing.T) {
	f, s := shapes(t, 10)
	table := New(f.Other())
	for i, one := range s {
		r := request(one, 1)
		table.Request(r)
		table.Reply(r, &pair.Reply{LatencyNanos: int64(1+(i*7)%10) * 1e6})
	}
	table.Drain(func(*Instance) {})
	victims := table.Evict(4)
	if len(victims) != 6 {
		t.Fatalf("%d victims", len(victims))
	}
	for _, v := range victims {
		if v == s[7] { // 7*7%10 = 9: the most load
			t.Error("the shape with the most load was dropped")
		}
	}
	f.Forget(victims)
	table.Request(request(victims[0], 1))
	table.Drain(func(i *Instance) {
		if len(i.Touched()) != 1 || i.Touched()[0].Shape != f.Other() {
			t.Errorf("a forgotten shape counts as %v", i.Touched()[0].Shape)
		}
	})
}

// Clients and commands are bounded, and forgotten when they were idle for long.
func TestTable_bounds(t *testing.T) {
	f, s := shapes(t, 1)
	table := New(f.Other())
	for i := range maxClients + 100 {
		r := request(s[0], 1)
		r.Peer.Client.Address[3], r.Peer.Client.Address[4] = byte(i), byte(i>>8)
		table.Request(r)
	}
	for i := range 400 {
		r := request(s[0], uint16(i))
		table.Request(r)
	}
	if len(table.Instances()) != maxInstances || table.Overflow == 0 {
		t.Errorf("%d servers, %d requests without one", len(table.Instances()), table.Overflow)
	}
	sketched := 0
	clients := func() (n int, other uint64) {
		sketched = 0
		table.Drain(func(i *Instance) {
			if i.Server.Port == 1 {
				i.Clients(func(c Client, st *Statistics, latency *sketch.Sketch) {
					n++
					if latency != nil {
						sketched++
					}
					if c.Application == OtherName {
						other = st.Requests
					}
				})
			}
		})
		return n, other
	}
	if n, other := clients(); n != maxClients+1 || other < 100 {
		t.Errorf("%d clients, %d requests of others", n, other)
	}
	if sketched != maxClientLatencies {
		t.Errorf("%d clients have latencies", sketched)
	}
	for range maxIdle + 1 {
		table.Drain(func(*Instance) {})
	}
	if n, _ := clients(); n != 0 {
		t.Errorf("%d idle clients are kept", n)
	}
	r := request(s[0], 1)
	table.Request(r)
	table.Reply(r, &pair.Reply{LatencyNanos: 3e6})
	table.Drain(func(i *Instance) {
		i.Clients(func(_ Client, _ *Statistics, latency *sketch.Sketch) {
			if latency == nil || latency.Count != 1 || latency.Max != 3e6 {
				t.Errorf("a client in the room of forgotten ones has latencies %v", latency)
			}
		})
	})
	table.Drain(func(i *Instance) {
		i.Clients(func(_ Client, _ *Statistics, latency *sketch.Sketch) {
			if latency.Count != 0 {
				t.Error("a client's latencies are not empty after a drain")
			}
		})
	})
}

// Time and bytes of a bulk are shared by the number of statements.
func TestTable_share(t *testing.T) {
	f, s := shapes(t, 2)
	table := New(f.Other())
	r := request(s[0], 1)
	r.Statements = []shape.Statement{{Shape: s[0], Count: 3}, {Shape: s[1], Count: 1}}
	table.Request(r)
	table.Reply(r, &pair.Reply{LatencyNanos: 4e6, Bytes: 40})
	table.Drain(func(i *Instance) {
		a, b := i.Touched()[0], i.Touched()[1]
		if a.TimeNanos != 3e6 || b.TimeNanos != 1e6 || a.RequestBytes != 75 || a.ReplyBytes != 30 || a.Requests != 3 || i.Total.Requests != 1 {
			t.Errorf("%+v and %+v of %+v", a.Statistics, b.Statistics, i.Total)
		}
	})
}

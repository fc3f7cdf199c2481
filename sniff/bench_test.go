package sniff

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sys/unix"

	"tidemark/sniff/capture"
	"tidemark/sniff/packet"
	"tidemark/sniff/shape"
	"tidemark/wire/mongo"
)

// cpuNanos is the process's own time so far: on a busy machine the clock says little.
func cpuNanos() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return t.Nano()
}

// measure runs fn b.N times and reports the process's time for each of the units that one run handles: that of the quickest run, which
// other processes on the machine disturbed least, and the mean.
func measure(b *testing.B, units int, fn func()) {
	b.Helper()
	b.ReportAllocs()
	fn()
	b.ResetTimer()
	least, first := int64(math.MaxInt64), cpuNanos()
	last := first
	for range b.N {
		fn()
		now := cpuNanos()
		least, last = min(least, now-last), now
	}
	b.ReportMetric(float64(least)/float64(units), "cpu-ns")
	b.ReportMetric(float64(last-first)/float64(b.N)/float64(units), "mean-cpu-ns")
	b.ReportMetric(0, "ns/op")
}

// typicalFind is the usual request: two conditions, a limit, a sort, a session, a deadline.
func typicalFind(id int) bson.D {
	return bson.D{
		{Key: "find", Value: "users"},
		{Key: "filter", Value: bson.D{{Key: "name", Value: "user " + string(rune('a'+id%26))}, {Key: "age", Value: bson.D{{Key: "$gte", Value: id % 70}, {Key: "$lt", Value: 90}}}}},
		{Key: "limit", Value: int64(1)},
		{Key: "singleBatch", Value: true},
		{Key: "sort", Value: bson.D{{Key: "name", Value: 1}}},
		{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}}},
		{Key: "maxTimeMS", Value: int64(5000)},
		{Key: "$db", Value: "shop"},
	}
}

// traffic is what one client and server say: finds, updates, inserts, and acknowledgements between them.
func traffic(t testing.TB, requests int) []wireFrame {
	w := newWire(t).open()
	for i := range requests {
		switch i % 4 {
		case 0, 1:
			w.ask(uint32(i), typicalFind(i), cursorReply(0, "firstBatch", 3))
		case 2:
			w.ask(uint32(i), bson.D{{Key: "update", Value: "users"}, {Key: "ordered", Value: true}, {Key: "$db", Value: "shop"}}, bson.D{{Key: "n", Value: 1}, {Key: "nModified", Value: 1}, {Key: "ok", Value: 1.0}},
				kind1(t, "updates", bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: i}}}, {Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "age", Value: i}}}}}}))
		case 3:
			w.ask(uint32(i), bson.D{{Key: "insert", Value: "orders"}, {Key: "ordered", Value: true}, {Key: "$db", Value: "shop"}}, bson.D{{Key: "n", Value: 1}, {Key: "ok", Value: 1.0}},
				kind1(t, "documents", bson.D{{Key: "_id", Value: i}, {Key: "text", Value: make([]byte, 300)}}))
		}
		w.segment(0, ack, nil)
	}
	return w.frames
}

// BenchmarkMongo is the table of `make bench-mongo`.
func BenchmarkMongo(b *testing.B) {
	frames := traffic(b, 500)
	one := frames[3].data // the first request
	b.Run("decode/tidemark", func(b *testing.B) {
		var p packet.Packet
		measure(b, 1000, func() {
			for range 1000 {
				packet.Decode(packet.Ethernet, one, len(one), &p)
			}
		})
	})
	b.Run("decode/gopacket-NewPacket", func(b *testing.B) {
		measure(b, 100, func() {
			for range 100 {
				gopacket.NewPacket(one, layers.LayerTypeEthernet, gopacket.Default)
			}
		})
	})
	b.Run("decode/gopacket-DecodingLayerParser", func(b *testing.B) {
		g := newLayers()
		measure(b, 1000, func() {
			for range 1000 {
				_ = g.parser.DecodeLayers(one, &g.decoded)
			}
		})
	})
	b.Run("shape/tidemark", func(b *testing.B) {
		f := shape.NewFinder(0, 1)
		var m mongo.Message
		var c shape.Command
		body := one[54:]
		if err := mongo.Decode(body, &m); err != nil {
			b.Fatal(err)
		}
		measure(b, 1000, func() {
			for range 1000 {
				f.Find(&m, &c)
			}
		})
	})
	b.Run("shape/bson.M", func(b *testing.B) {
		measure(b, 100, func() {
			for range 100 {
				var d bson.M
				_ = bson.Unmarshal(one[54+21:], &d)
			}
		})
	})
	b.Run("pipeline/tidemark", func(b *testing.B) {
		s, err := New(Options{Ports: []uint16{27017}})
		if err != nil {
			b.Fatal(err)
		}
		replay := newReplay(frames)
		measure(b, len(frames), func() { replay.run(s) })
	})
	b.Run("pipeline/prototype", func(b *testing.B) {
		p := newPrototype()
		measure(b, len(frames), func() {
			for _, f := range frames {
				p.frame(f.data)
			}
		})
	})
}

// replay plays the same frames again and again as one long connection: sequence numbers go on from round to round.
type replay struct {
	frames []wireFrame
	span   [2]uint32
	frame  capture.Frame
}

func newReplay(frames []wireFrame) *replay {
	r := &replay{frames: frames[3:]}
	for _, f := range r.frames {
		side := 0
		if be.Uint16(f.data[34:]) == 27017 {
			side = 1
		}
		r.span[side] += uint32(len(f.data) - 54)
	}
	for i := range r.frames {
		r.frames[i].data = append([]byte(nil), r.frames[i].data...)
	}
	return r
}

func (r *replay) run(s *Sniffer) {
	for i := range r.frames {
		f := &r.frames[i]
		r.frame = capture.Frame{Data: f.data, WireBytes: f.wire, At: f.at, Link: f.link}
		s.Frame(&r.frame)
		side := 0
		if be.Uint16(f.data[34:]) == 27017 {
			side = 1
		}
		be.PutUint32(f.data[38:], be.Uint32(f.data[38:])+r.span[side])
	}
}

// parsedLayers is gopacket's way that does not allocate.
type parsedLayers struct {
	eth     layers.Ethernet
	ip      layers.IPv4
	tcp     layers.TCP
	payload gopacket.Payload
	parser  *gopacket.DecodingLayerParser
	decoded []gopacket.LayerType
}

func newLayers() *parsedLayers {
	g := &parsedLayers{}
	g.parser = gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &g.eth, &g.ip, &g.tcp, &g.payload)
	return g
}

// prototype is what one writes first: gopacket, the driver's BSON, a map by request id.
type prototype struct {
	waiting map[int32]string
	totals  map[string]int
}

func newPrototype() *prototype {
	return &prototype{waiting: map[int32]string{}, totals: map[string]int{}}
}

func (p *prototype) frame(b []byte) {
	parsed := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
	tcp, isTCP := parsed.TransportLayer().(*layers.TCP)
	if !isTCP || len(tcp.Payload) < 26 {
		return
	}
	body := tcp.Payload
	var d bson.M
	if bson.Unmarshal(body[21:21+le.Uint32(body[21:])], &d) != nil {
		return
	}
	if tcp.DstPort == 27017 {
		delete(d, "lsid")
		key, _ := json.Marshal(d["filter"])
		p.waiting[int32(le.Uint32(body[4:]))] = string(key[:min(len(key), 8)])
		return
	}
	id := int32(le.Uint32(body[8:]))
	p.totals[p.waiting[id]]++
	delete(p.waiting, id)
}

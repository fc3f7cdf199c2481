package sniff

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The parts of the frames that newWire makes, for connections that differ in their client only.
const (
	sourceAt      = 26 // of the IPv4 header
	destinationAt = 30
	portsAt       = 34
	sequenceAt    = 38
	payloadAt     = 54
)

// churn plays connections that come and go while much of them is not captured.
type churn struct {
	s              *Sniffer
	request, reply wireFrame
	part           wireFrame          // the first kilobyte of a request of 20
	sequences      map[int]*[2]uint32 // of the client and the server
	at             int64
}

func newChurn(t *testing.T) *churn {
	s, err := New(Options{Ports: []uint16{27017}})
	if err != nil {
		t.Fatal(err)
	}
	c := &churn{s: s, sequences: map[int]*[2]uint32{}, at: 1_700_000_000e9}
	w := newWire(t)
	w.ask(1, find("items", bson.D{{Key: "a", Value: 1}}), bson.D{{Key: "ok", Value: 1}})
	c.request, c.reply = w.frames[0], w.frames[1]
	w = newWire(t)
	w.most = 1000
	w.send(0, msg(t, 1, 0, 0, kind0(t, find("items", bson.D{{Key: "a", Value: string(make([]byte, 20_000))}}))))
	c.part = w.frames[0]
	return c
}

// say plays a frame of a side of a connection (0: client), behind bytes that are not captured.
func (c *churn) say(f wireFrame, connection, side int, missing uint32) {
	address, port := sourceAt, portsAt
	if side == 1 {
		address, port = destinationAt, portsAt+2
	}
	be.PutUint32(f.data[address:], 10<<24|uint32(connection>>15))
	be.PutUint16(f.data[port:], uint16(1024+connection&0x7fff))
	sequences := c.sequences[connection]
	if sequences == nil {
		// Equal bytes under equal numbers would be copies of one conversation.
		sequences = &[2]uint32{uint32(connection) << 12, uint32(connection) << 12}
		c.sequences[connection] = sequences
	}
	sequences[side] += missing
	be.PutUint32(f.data[sequenceAt:], sequences[side])
	be.PutUint32(f.data[sequenceAt+4:], 0)
	sequences[side] += uint32(f.wire - payloadAt)
	frame := decoded(f)
	frame.At = c.at
	c.s.Frame(&frame)
}

// TestMemory_losses bounds what is kept when the end of no connection is captured, nor much else: 10,000 connections speak, and each second
// 500 others come, say something, and are never heard of again.
func TestMemory_losses(t *testing.T) {
	const live, seconds, others, limit = 10_000, 200, 500, 24 << 20
	cases := map[string]func(c *churn, connection int){
		"every end": func(c *churn, n int) {
			c.say(c.request, n, 0, 0)
			c.say(c.reply, n, 1, 0)
		},
		"every reply": func(c *churn, n int) { c.say(c.request, n, 0, 0) },
		"the rest of each message": func(c *churn, n int) {
			c.say(c.part, n, 0, 0)
		},
		"every second request": func(c *churn, n int) {
			c.say(c.request, n, 0, 0)
			c.say(c.request, n, 0, 300)
		},
	}
	for name, speak := range cases {
		t.Run(name, func(t *testing.T) {
			c := newChurn(t)
			next, most := live, 0
			before := int64(0)
			for second := range seconds {
				for i := range live / 10 {
					speak(c, (second*live/10+i)%live)
				}
				for range others {
					speak(c, next)
					delete(c.sequences, next)
					next++
				}
				c.at += 1e9
				c.s.Expire(c.at)
				flows, buffered := c.s.flows.Len()
				most = max(most, flows)
				if buffered > 8<<20 {
					t.Fatalf("second %d: %d bytes are held", second, buffered)
				}
				if second == 0 {
					before = heap()
				}
			}
			used := heap() - before
			n := c.s.Counters()
			t.Logf("%d KiB, at most %d connections, %d forgotten early, %d to make room, %d wait", used>>10, most, n.Flow.Hastened, n.Flow.Evicted, n.Waiting)
			if used > limit {
				t.Errorf("%d MiB more are in use after %d s", used>>20, seconds)
			}
			if n.Flow.Hastened == 0 || n.Flow.Evicted != 0 {
				t.Errorf("%d connections were forgotten early, %d to make room", n.Flow.Hastened, n.Flow.Evicted)
			}
			for i := range live {
				c.say(c.request, i, 0, 0)
			}
			if flows, _ := c.s.flows.Len(); n.Flow.Flows == 0 || c.s.Counters().Flow.Flows-n.Flow.Flows > 0 {
				t.Errorf("%d connections that speak were forgotten; %d are left", c.s.Counters().Flow.Flows-n.Flow.Flows, flows)
			}
		})
	}
}

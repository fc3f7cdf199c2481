package sniff

import (
	"bufio"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"tidemark/wire/mongo"
)

// testServer speaks enough of MongoDB's protocol for real drivers: handshake, find with cursors, writes, errors.
type testServer struct {
	t        testing.TB
	listener net.Listener
	delay    time.Duration // of every answer to a command that is load
	wg       sync.WaitGroup

	mu sync.Mutex
	// bytes of requests and replies as they were, by command.
	in, out map[string]uint64
	conns   []net.Conn
}

func newTestServer(t testing.TB, address string, delay time.Duration) *testServer {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &testServer{t: t, listener: l, delay: delay, in: map[string]uint64{}, out: map[string]uint64{}}
	s.wg.Go(s.accept)
	t.Cleanup(s.close)
	return s
}

func (s *testServer) port() uint16 { return uint16(s.listener.Addr().(*net.TCPAddr).Port) }

func (s *testServer) close() {
	s.listener.Close()
	s.mu.Lock()
	for _, c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

func (s *testServer) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, c)
		s.mu.Unlock()
		s.wg.Go(func() { s.serve(c) })
	}
}

func (s *testServer) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for id := uint32(1); ; id++ {
		head := make([]byte, mongo.HeaderBytes)
		if _, err := io.ReadFull(in, head); err != nil {
			return
		}
		h, err := mongo.DecodeHeader(head)
		if err != nil {
			return
		}
		b := append(head, make([]byte, h.Length-len(head))...)
		if _, err := io.ReadFull(in, b[len(head):]); err != nil {
			return
		}
		reply := s.answer(h, b, id)
		if reply == nil {
			continue
		}
		if _, err := c.Write(reply); err != nil {
			return
		}
	}
}

// answer makes the reply to a message, or nil.
func (s *testServer) answer(h mongo.Header, b []byte, id uint32) []byte {
	var m mongo.Message
	if mongo.Decode(b, &m) != nil {
		return nil
	}
	var d bson.D
	if bson.Unmarshal(m.Body, &d) != nil || len(d) == 0 {
		return nil
	}
	name := d[0].Key
	if h.Op == mongo.OpQuery {
		return message(mongo.OpReply, id, h.RequestID, append(numbers(8, 0, 0, 0, 1), doc(s.t, helloReply())...))
	}
	if name != "hello" && name != "ismaster" {
		time.Sleep(s.delay)
	}
	reply := msg(s.t, id, h.RequestID, 0, kind0(s.t, s.command(name, d)))
	s.mu.Lock()
	s.in[name] += uint64(len(b))
	if !m.MoreToCome {
		s.out[name] += uint64(len(reply))
	}
	s.mu.Unlock()
	if m.MoreToCome {
		return nil
	}
	return reply
}

func helloReply() bson.D {
	return bson.D{
		{Key: "ismaster", Value: true},
		{Key: "isWritablePrimary", Value: true},
		{Key: "helloOk", Value: true},
		{Key: "maxBsonObjectSize", Value: 16 << 20},
		{Key: "maxMessageSizeBytes", Value: 48000000},
		{Key: "maxWriteBatchSize", Value: 100000},
		{Key: "logicalSessionTimeoutMinutes", Value: 30},
		{Key: "minWireVersion", Value: 0},
		{Key: "maxWireVersion", Value: 21},
		{Key: "ok", Value: 1.0},
	}
}

func (s *testServer) command(name string, d bson.D) bson.D {
	batch := func(n int) bson.A {
		b := bson.A{}
		for i := range n {
			b = append(b, bson.D{{Key: "_id", Value: i}, {Key: "text", Value: "some text of a document"}})
		}
		return b
	}
	switch name {
	case "hello", "ismaster":
		return helloReply()
	case "find":
		if d[0].Value == "broken" {
			return bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: "no"}, {Key: "code", Value: 2}, {Key: "codeName", Value: "BadValue"}}
		}
		id := int64(0)
		if d[0].Value == "many" {
			id = 77
		}
		return bson.D{{Key: "cursor", Value: bson.D{{Key: "firstBatch", Value: batch(3)}, {Key: "id", Value: id}, {Key: "ns", Value: "shop.many"}}}, {Key: "ok", Value: 1.0}}
	case "getMore":
		return bson.D{{Key: "cursor", Value: bson.D{{Key: "nextBatch", Value: batch(2)}, {Key: "id", Value: int64(0)}, {Key: "ns", Value: "shop.many"}}}, {Key: "ok", Value: 1.0}}
	case "insert":
		if d[0].Value == "broken" {
			return bson.D{{Key: "n", Value: 0}, {Key: "writeErrors", Value: bson.A{bson.D{{Key: "index", Value: 0}, {Key: "code", Value: 11000}, {Key: "errmsg", Value: "duplicate"}}}}, {Key: "ok", Value: 1.0}}
		}
		return bson.D{{Key: "n", Value: 1}, {Key: "ok", Value: 1.0}}
	}
	return bson.D{{Key: "n", Value: 1}, {Key: "nModified", Value: 1}, {Key: "ok", Value: 1.0}}
}

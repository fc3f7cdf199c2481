package mongodb

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// fakeMongo answers the wire protocol with prepared answers.
type fakeMongo struct {
	t        *testing.T
	listener net.Listener
	done     sync.WaitGroup

	mu sync.Mutex
	// answers by command; a command without one is unknown.
	answers map[string]bson.Raw
	asked   map[string]int
	// commands are the texts of all commands but hello.
	commands []string
}

func newFakeMongo(t *testing.T) *fakeMongo {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeMongo{t: t, listener: listener, answers: map[string]bson.Raw{}, asked: map[string]int{}}
	conns := map[net.Conn]bool{}
	f.done.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			conns[conn] = true
			f.mu.Unlock()
			f.done.Go(func() { f.serve(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		f.mu.Lock()
		for conn := range conns {
			conn.Close()
		}
		f.mu.Unlock()
		f.done.Wait()
	})
	return f
}

func (f *fakeMongo) uri(user string) string {
	return "mongodb://" + user + f.listener.Addr().String() + "/"
}

func (f *fakeMongo) answer(command string, d any) {
	raw, ok := d.(bson.Raw)
	if !ok {
		var err error
		if raw, err = bson.Marshal(d); err != nil {
			f.t.Fatal(err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[command] = raw
}

func (f *fakeMongo) count(command string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[command]
}

const (
	opReply, opQuery, opMsg = 1, 2004, 2013
	headerBytes             = 16
)

func (f *fakeMongo) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var header [headerBytes]byte
		if _, err := io.ReadFull(conn, header[:]); err != nil {
			return
		}
		body := make([]byte, binary.LittleEndian.Uint32(header[:])-headerBytes)
		if _, err := io.ReadFull(conn, body); err != nil {
			return
		}
		op := binary.LittleEndian.Uint32(header[12:])
		command, err := commandOf(op, body)
		if err != nil {
			f.t.Errorf("a request cannot be read: %v", err)
			return
		}
		if _, err := conn.Write(reply(op, binary.LittleEndian.Uint32(header[4:]), f.reply(command))); err != nil {
			return
		}
	}
}

// commandOf returns the command document of a request.
func commandOf(op uint32, body []byte) (bson.Raw, error) {
	switch {
	case op == opMsg && len(body) > 5 && body[4] == 0:
		return bson.Raw(body[5:]), nil
	case op == opQuery:
		for i := 4; i < len(body); i++ {
			if body[i] == 0 {
				return bson.Raw(body[i+9:]), nil
			}
		}
	}
	return nil, errors.New("expected OP_MSG or OP_QUERY")
}

func (f *fakeMongo) reply(command bson.Raw) bson.Raw {
	elements, err := command.Elements()
	if err != nil || len(elements) == 0 {
		f.t.Errorf("a command cannot be read: %v", err)
		return nil
	}
	name := elements[0].Key()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[name]++
	if name == "hello" || name == "isMaster" || name == "ismaster" {
		raw, _ := bson.Marshal(bson.D{
			{Key: "ok", Value: 1},
			{Key: "isWritablePrimary", Value: true},
			{Key: "ismaster", Value: true},
			{Key: "helloOk", Value: true},
			{Key: "minWireVersion", Value: 0},
			{Key: "maxWireVersion", Value: 21},
			{Key: "maxBsonObjectSize", Value: 16 << 20},
			{Key: "maxMessageSizeBytes", Value: 48_000_000},
			{Key: "maxWriteBatchSize", Value: 100_000},
		})
		return raw
	}
	f.commands = append(f.commands, command.String())
	if raw := f.answers[name]; raw != nil {
		return raw
	}
	raw, _ := bson.Marshal(failure(codeCommandNotFound, "no such command: '"+name+"'"))
	return raw
}

// failure is the answer to a command that failed.
func failure(code int, text string) bson.D {
	return bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: text}, {Key: "code", Value: code}, {Key: "codeName", Value: "X"}}
}

func reply(op, id uint32, document bson.Raw) []byte {
	answer, b := uint32(opMsg), make([]byte, headerBytes+5) // Flags, and the section's kind.
	if op == opQuery {
		answer, b = opReply, make([]byte, headerBytes+20) // Flags, cursor, starting from, number of documents.
		b[headerBytes+16] = 1
	}
	b = append(b, document...)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	binary.LittleEndian.PutUint32(b[8:], id)
	binary.LittleEndian.PutUint32(b[12:], answer)
	return b
}

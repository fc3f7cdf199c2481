package reactor

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"
)

type question struct {
	Question
	refuse int
	got    string
	err    error
	done   chan struct{}
}

func (q *question) Answer(packet []byte) bool {
	if q.refuse > 0 {
		q.refuse--
		return false
	}
	q.got = string(packet[4:])
	close(q.done)
	return true
}

func (q *question) Failed(err error) { q.err = err; close(q.done) }

func (q *question) wait(t *testing.T) (string, error) {
	t.Helper()
	select {
	case <-q.done:
	case <-time.After(time.Minute):
		t.Fatal("the question does not end")
	}
	return q.got, q.err
}

func put(d *Datagrams, to netip.AddrPort, id uint32, text string, change func(*question)) *question {
	q := &question{done: make(chan struct{})}
	q.Question = Question{Context: context.Background(), Deadline: time.Now().Add(time.Minute), To: to, ID: id, Asker: q}
	q.Packet = append(binary.BigEndian.AppendUint32(nil, id), text...)
	if change != nil {
		change(q)
	}
	d.Do(func() { d.Ask(&q.Question) })
	return q
}

// TestDatagrams has peers that answer late, to others, twice and with nonsense.
func TestDatagrams(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		pc, err := net.ListenPacket("udp", address)
		if err != nil {
			t.Fatal(err)
		}
		other, err := net.ListenPacket("udp", address)
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			b := make([]byte, 2048)
			for {
				n, from, err := pc.ReadFrom(b)
				if err != nil {
					return
				}
				if string(b[4:n]) == "silent" {
					continue
				}
				other.WriteTo(append(b[:4:4], "forged"...), from)
				pc.WriteTo([]byte("x"), from)
				pc.WriteTo(append([]byte{9, 9, 9, 9}, "nobody asked"...), from)
				for range 2 {
					pc.WriteTo(b[:n], from)
				}
			}
		}()
		d := NewDatagrams(DatagramOptions{ID: func(p []byte) (uint32, bool) {
			if len(p) < 4 {
				return 0, false
			}
			return binary.BigEndian.Uint32(p), true
		}})
		to := netip.MustParseAddrPort(pc.LocalAddr().String())
		var list []*question
		for id := range uint32(100) {
			list = append(list, put(d, to, id+1, "hello", func(q *question) { q.refuse = int(id % 2) }))
		}
		for _, q := range list {
			if got, err := q.wait(t); got != "hello" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		}
		q := put(d, to, 1000, "silent", func(q *question) { q.Deadline = time.Now().Add(time.Millisecond) })
		if _, err := q.wait(t); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a peer that does not answer: %v", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		q = put(d, to, 1001, "silent", func(q *question) { q.Context = ctx })
		cancel()
		if _, err := q.wait(t); !errors.Is(err, context.Canceled) {
			t.Errorf("a question that is not wanted any more: %v", err)
		}
		q = put(d, to, 1002, string(make([]byte, 70_000)), nil)
		if _, err := q.wait(t); err == nil {
			t.Error("a packet that is too long was sent")
		}
		for range 2 {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
		pc.Close()
		other.Close()
		<-served
	}
}

package trapper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"tidemark/collect"
	"tidemark/model"
	"tidemark/wire/zbx"
)

// fetchRequest asks a passive proxy for what it has.
const fetchRequest = `{"request":"proxy data"}`

// maxRefusalBytes bounds an answer that may be a refusal.
const maxRefusalBytes = 4096

// Fetch asks a passive proxy for what it has, stores it as if the proxy had brought it, and tells the proxy. nc is connected to the proxy, in the
// way that peer says; the caller closes it. more says that the proxy brought values and has more.
func (s *Server) Fetch(ctx context.Context, id model.ProxyID, name string, nc net.Conn, peer collect.Peer) (more bool, err error) {
	c := &conn{Conn: nc, opened: time.Now(), peer: peer}
	w := s.workers.Get().(*worker)
	w.reader.Reset(c)
	w.frames.Reserve = func(n int) error { return s.reserve(ctx, c, n) }
	defer func() {
		s.giveBack(c)
		w.reader.Reset(nil)
		w.frames.Reserve = nil
		w.frames.Shrink()
		if cap(w.answer) <= 1<<20 && cap(w.out) <= 1<<20 {
			s.workers.Put(w)
		}
	}()
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) }) // ends a read or write at once
	defer stop()
	if err := nc.SetDeadline(time.Now().Add(s.o.ReadTimeout)); err != nil {
		return false, err
	}
	w.out = zbx.AppendFrame(w.out[:0], []byte(fetchRequest))
	if _, err := nc.Write(w.out); err != nil {
		return false, fmt.Errorf("ask the proxy: %w", err)
	}
	h, body, err := w.frames.Read(w.reader)
	if err != nil {
		return false, fmt.Errorf("read what the proxy has: %w", err)
	}
	s.meters.received.Add(len(body))
	s.meters.requests[zbx.ProxyData].Inc()
	if err := proxyRefusal(body); err != nil {
		return false, err
	}
	r, err := zbx.DecodeRequest(body)
	if err != nil {
		return false, fmt.Errorf("read what the proxy has: %w", err)
	}
	r.Name, r.Host = []byte(zbx.ProxyData), []byte(name)
	s.o.Proxies.Began(id, s.contact(c, &r))
	w.answer, w.squeeze, w.unsent = w.answer[:0], false, nil
	s.proxyData(ctx, c, w, &r, id)
	verdict, err := zbx.DecodeAnswer(slices.Clone(w.answer))
	if err == nil {
		if err = s.write(c, w, h); err != nil {
			w.giveBackTasks()
		}
	}
	if err == nil && !verdict.Success {
		err = errors.New("what the proxy has is not taken: " + verdict.Info)
	}
	// A proxy that says so and brings nothing is not asked again at once, and again.
	return r.More != 0 && len(r.History) > len("[]"), err
}

// proxyRefusal is the reason why a proxy does not do what it is asked for; nil when it does.
func proxyRefusal(body []byte) error {
	if len(body) == 0 {
		return errors.New("the proxy closed the connection without an answer; does it allow this server's address")
	}
	if len(body) > maxRefusalBytes {
		return nil
	}
	a, err := zbx.DecodeAnswer(slices.Clone(body))
	if err == nil && !a.Success && a.Info != "" {
		return errors.New("the proxy refuses: " + a.Info)
	}
	return nil
}

// LogPosition is how far the log of an item was read, and the file's time in Unix seconds.
func (s *Server) LogPosition(item model.ItemID) (size, mtime uint64) {
	p := s.logs.get(item)
	return p.size, p.mtime
}

// contact is what a request shows of a proxy.
func (s *Server) contact(c *conn, r *zbx.Request) ProxyContact {
	contact := ProxyContact{At: s.o.Now(), Version: clip(r.Version), Peer: c.address().Unmap().String(), Session: clip(r.Session), Data: string(r.Name) == zbx.ProxyData}
	if r.Clock != 0 && r.Clock < 1<<33 {
		contact.AheadNanos = int64(r.Clock)*second + int64(min(r.NS, uint64(second-1))) - contact.At
	}
	return contact
}

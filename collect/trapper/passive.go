package trapper

import (
	"context"
	"net/netip"
	"time"

	"tidemark/collect"
	"tidemark/wire/zbx"
)

// Passive is a proxy that waits for its server to ask. Its methods are called from many goroutines.
type Passive interface {
	// Admit is nil for a peer that may ask as the server.
	Admit(ctx context.Context, p collect.Peer, from netip.Addr) error
	// Configure brings a configuration into force: the tables, as JSON.
	Configure(ctx context.Context, tables []byte) error
	// Offer appends what there is for the server. settle hears the server's answer, or that there was none. cut ends the wait for it: the next
	// offer calls it, because a server that asks anew waits for nothing of before.
	Offer(ctx context.Context, dst []byte, cut func()) (body []byte, settle func(answer []byte, err error) error, err error)
	// Results is Offer for what became of tasks alone.
	Results(ctx context.Context, dst []byte, cut func()) (body []byte, settle func(answer []byte, err error) error, err error)
	// Version is the line of the protocol: "6.0.0".
	Version() string
}

// settleTimeout bounds how long the server may take to say what it makes of an offer.
const settleTimeout = 90 * time.Second

// passive serves a request of the server to a passive proxy.
func (s *Server) passive(ctx context.Context, c *conn, w *worker, r *zbx.Request) {
	if err := s.o.Passive.Admit(ctx, c.peer, c.address()); err != nil {
		s.refuse(c, kindNotAllowed, "a server asks this proxy that may not", "error", err)
		w.answer = zbx.AppendFailed(w.answer, err.Error())
		return
	}
	w.squeeze = true
	switch string(r.Name) {
	case zbx.ProxyConfig:
		err := s.o.Passive.Configure(ctx, r.Tables)
		if err != nil {
			s.o.Log.Warn("the configuration that the server gave is not in force", "error", err)
			w.answer = zbx.AppendProxySaid(w.answer, "failed", err.Error(), s.o.Passive.Version())
			return
		}
		w.answer = zbx.AppendProxySaid(w.answer, "success", "", s.o.Passive.Version())
	default:
		offer := s.o.Passive.Offer
		if string(r.Name) == zbx.ProxyTasks {
			offer = s.o.Passive.Results
		}
		var err error
		if w.answer, w.settle, err = offer(ctx, w.answer, func() { s.cut(c) }); err != nil {
			w.answer = zbx.AppendFailed(w.answer[:0], err.Error())
		}
	}
}

// cut ends the wait for what a peer says.
func (s *Server) cut(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.evicted.Store(true)
	_ = c.SetReadDeadline(time.Unix(1, 0)) // a connection that is closed already waits for nothing
}

// hearVerdict reads what the server makes of an offer.
func (s *Server) hearVerdict(ctx context.Context, c *conn, w *worker, sent error) {
	var body []byte
	err := sent
	if err == nil {
		s.setReadDeadline(ctx, c, settleTimeout)
		_, body, err = w.frames.Read(w.reader)
	}
	if err := w.settle(body, err); err != nil {
		s.refuse(c, answerFailed, "the server does not take what the proxy has; it is kept", "error", err)
	}
	w.settle = nil
}

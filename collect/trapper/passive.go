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
	// Offer appends what there is for the server. settle hears the server's answer, or that there was none; the next offer waits for it.
	Offer(ctx context.Context, dst []byte) (body []byte, settle func(answer []byte, err error) error, err error)
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
	case zbx.ProxyTasks:
		// There are no tasks, and so no results of any.
		w.answer = zbx.AppendProxySaid(w.answer, "success", "", s.o.Passive.Version())
		w.settle = func([]byte, error) error { return nil }
	default:
		var err error
		if w.answer, w.settle, err = s.o.Passive.Offer(ctx, w.answer); err != nil {
			w.answer = zbx.AppendFailed(w.answer[:0], err.Error())
		}
	}
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

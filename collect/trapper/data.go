package trapper

import (
	"context"
	"errors"
	"time"

	"tidemark/wire/zbx"
)

// maxDeclarations bounds the declarations of one request; it is the largest number of declared items that a host may
// have.
const maxDeclarations = 20_000

// data serves `sender data` and `agent data`.
func (s *Server) data(ctx context.Context, c *conn, w *worker, r *zbx.Request) {
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, s.o.StoreTimeout)
	defer cancel()
	in := w.ingest.begin(s, c, string(r.Name) == zbx.AgentData)
	defer in.end()
	if !s.greet(c, w, in, r) {
		return
	}
	err := in.declare(ctx, r.Declare)
	if err == nil {
		err = in.rows(ctx, r.Data)
	}
	// Waiting until the values are durable is not work.
	s.meters.busy.Add(time.Since(started).Seconds())
	if err == nil {
		err = in.store(ctx)
	}
	switch {
	case errors.Is(err, errRedeclare):
		s.refuse(c, redeclare, "a Tidemark agent must declare its items again", "host", clip(r.Host))
		w.answer = zbx.AppendRedeclare(w.answer, err.Error())
	case err != nil:
		s.refuse(c, notStored, "values were not stored; the peer will send them again", "host", clip(r.Host), "error", err)
	default:
		w.answer = zbx.AppendDataAnswer(w.answer, in.counts, time.Since(started))
	}
}

// greet checks who sends. It reports false when the request is answered already.
func (s *Server) greet(c *conn, w *worker, in *ingest, r *zbx.Request) bool {
	if !in.agent {
		return true
	}
	if len(r.Session) != 0 && len(r.Session) != sessionTokenBytes {
		s.refuse(c, badSession, "a session token has the wrong length", "host", clip(r.Host), "length", len(r.Session))
		w.answer = zbx.AppendFailed(w.answer, "invalid session token: expected 32 characters")
		return false
	}
	if s.capped() {
		s.refuse(c, paused, "an agent was asked to keep its values, because the history cache is nearly full", "host", clip(r.Host))
		w.answer = zbx.AppendPaused(w.answer)
		return false
	}
	in.token = r.Session
	in.declares = r.Tidemark != 0 && s.o.Declarer != nil
	if len(r.Host) == 0 {
		return true
	}
	in.requestHost = r.Host
	in.setHost(r.Host)
	if in.known && !in.allowed {
		// Failure makes the agent keep its values until the settings of both fit.
		w.answer = zbx.AppendFailed(w.answer, s.kindRefused(c, r.Host))
		return false
	}
	if in.known {
		return true
	}
	s.refuse(c, unknownAgent, "agent data of an unknown host", "host", clip(r.Host))
	info := "unknown host '" + clip(r.Host) + "'"
	if in.declares {
		// Our own agent keeps its values and registers first.
		w.answer = zbx.AppendRedeclare(w.answer, info)
		return false
	}
	// Success makes other agents drop values that nobody will ever take; else they would send them forever.
	w.answer = zbx.AppendSuccess(w.answer, info)
	return false
}

// capped reports whether agents should keep their values.
func (s *Server) capped() bool { return s.o.Capped != nil && s.o.Capped() }

// declare makes the items known that our own agent declares.
func (in *ingest) declare(ctx context.Context, text []byte) error {
	if !in.declares || len(text) == 0 || !in.host.Enabled {
		return nil
	}
	var all []Declaration
	walk := zbx.NewDeclarations(text)
	for d := (Declaration{}); walk.Next(&d); {
		if d.Bad != "" || len(all) == maxDeclarations {
			in.refuseKey(d.Key)
			continue
		}
		all = append(all, d)
	}
	if walk.Err() != nil {
		return walk.Err()
	}
	ids, err := in.s.o.Declarer.Declare(ctx, in.host.ID, all)
	if err != nil {
		return err
	}
	for i, d := range all {
		if i >= len(ids) || ids[i] == 0 {
			in.refuseKey(d.Key)
			continue
		}
		in.s.meters.declared.Inc()
	}
	return nil
}

func (in *ingest) refuseKey(key string) {
	if in.refused == nil {
		in.refused = make(map[string]struct{})
	}
	in.refused[key] = struct{}{}
	in.s.meters.undeclared.Inc()
}

func (in *ingest) rows(ctx context.Context, data []byte) error {
	walk := zbx.NewRows(data)
	for walk.Next(&in.row) {
		if err := in.take(ctx, &in.row); err != nil {
			return err
		}
	}
	return walk.Err()
}

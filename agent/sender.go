package agent

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"tidemark/wire/zbx"
)

// protocolVersion is the agent version whose protocol we speak. Servers choose the form of their list by it.
const protocolVersion = "7.0.0"

// variant is what Zabbix calls agent 2: the server may expect of us what it expects of that one.
const variant = 2

// tidemarkVersion is the version of our extension of the protocol.
const tidemarkVersion = 1

// batchRows bounds the rows of one request.
const batchRows = 1000

// The pauses after a failed request: the first, and the longest that doubling leads to.
const (
	firstPause = 250 * time.Millisecond
	maxPause   = 2 * time.Second
)

// finishTimeout bounds the sending after the agent was told to end.
const finishTimeout = 500 * time.Millisecond

// redeclareAfter is how long a server that refuses rows is not told their items again.
const redeclareAfter = time.Minute

// spread is the share of a tick over which agents of different hosts spread their requests to one server.
const spread = 200 * time.Millisecond

// errRefused is an answer other than success.
var errRefused = errors.New("the server refused the values")

// sender sends what the buffer holds.
type sender struct {
	agent    *Agent
	peer     *peer
	request  zbx.DataRequest
	body     []byte
	value    []byte
	rows     []row
	declared map[*item]bool
	// redeclared is when declarations were last forgotten because rows were refused.
	redeclared time.Time
	delay      time.Duration
	// hold is set while the server asks to send nothing.
	hold atomic.Bool
}

func newSender(a *Agent) *sender {
	s := &sender{agent: a, peer: a.peer, declared: map[*item]bool{}}
	s.request = zbx.DataRequest{
		Name: zbx.AgentData, Host: a.options.Host, Session: a.state.get().Session, Version: protocolVersion, Variant: variant,
	}
	if !a.peer.near {
		h := fnv.New32a()
		io.WriteString(h, a.options.Host) //nolint:errcheck // Hashes take everything.
		s.delay = min(spread, a.options.Interval/5) * time.Duration(h.Sum32()%1024) / 1024
	}
	return s
}

// run sends whenever there are rows and the server knows this agent, until ctx ends; requests may go on until grace ends.
func (s *sender) run(ctx, grace context.Context) {
	a := s.agent
	pause := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.put:
		}
		if !a.ready.Load() || s.hold.Load() {
			continue
		}
		if !wait(ctx, max(pause, s.delay)) {
			return
		}
		err := s.drain(grace)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			s.connected()
			pause = 0
			continue
		}
		if a.stats.connected.Swap(false) || pause == 0 {
			a.log.Warn("values cannot be sent to the server; they wait in the buffer", "server", s.peer.address, "error", err)
		}
		clear(s.declared) // Another server, or an emptied one, may answer next.
		pause = min(max(2*pause, firstPause), maxPause)
		a.unready()
	}
}

// finish sends what is left when the agent ends and its server answers.
func (s *sender) finish(grace context.Context) {
	if !s.agent.ready.Load() {
		return
	}
	if err := s.drain(grace); err != nil {
		s.agent.log.Info("the last values stay in the buffer for the next start", "error", err)
	}
}

func (s *sender) connected() {
	if !s.agent.stats.connected.Swap(true) {
		s.agent.log.Info("values are being sent", "server", s.peer.address, "host", s.agent.options.Host)
	}
}

// wait sleeps, and reports false when ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// drain sends until nothing waits.
func (s *sender) drain(ctx context.Context) error {
	for ctx.Err() == nil && !s.hold.Load() {
		s.rows = s.agent.buffer.take(s.rows[:0], batchRows)
		if len(s.rows) == 0 {
			return nil
		}
		if err := s.send(ctx, s.rows); err != nil {
			return err
		}
		s.agent.buffer.done(s.rows[len(s.rows)-1].id)
		clear(s.rows)
	}
	return ctx.Err()
}

// send sends rows and returns nil once the server has taken them.
func (s *sender) send(ctx context.Context, rows []row) error {
	answer, err := s.peer.exchange(ctx, s.encode(rows))
	if err == nil && answer.Redeclare {
		clear(s.declared)
		answer, err = s.peer.exchange(ctx, s.encode(rows))
	}
	if err != nil {
		return err
	}
	if !answer.Success || answer.Redeclare || strings.HasPrefix(answer.Info, "unknown host") {
		return fmt.Errorf("%w: %s", errRefused, answer.Info)
	}
	s.count(answer, rows)
	return nil
}

// count notes what the server made of the rows. Rows that it had already, from before a lost answer, count as failed
// there too.
func (s *sender) count(answer zbx.Answer, rows []row) {
	a := s.agent
	for i := range rows {
		if rows[i].item.declaration != nil {
			s.declared[rows[i].item] = true
		}
	}
	if len(s.declared) > maxDeclared+4*batchRows {
		clear(s.declared) // Items of devices that came and went.
	}
	failed := uint64(0)
	if answer.HasCounts {
		failed = min(answer.Counts.Failed, uint64(len(rows)))
	}
	a.stats.failed.Add(failed)
	a.stats.sent.Add(uint64(len(rows)) - failed)
	if failed > 0 && time.Since(s.redeclared) > redeclareAfter {
		a.log.Warn("the server did not take all values", "failed", failed, "sent", len(rows), "info", answer.Info)
		s.redeclared = time.Now()
		clear(s.declared)
	}
}

// encode makes the request for rows, with the declarations that the server has not had.
func (s *sender) encode(rows []row) []byte {
	s.request.Tidemark = 0
	for i := range rows {
		if rows[i].item.declaration != nil {
			s.request.Tidemark = tidemarkVersion
			break
		}
	}
	b := s.request.Begin(s.body[:0])
	var new map[*item]bool
	for i := range rows {
		it := rows[i].item
		if it.declaration == nil || s.declared[it] || new[it] {
			continue
		}
		if new == nil {
			new = map[*item]bool{}
		}
		new[it] = true
		b = s.request.Declare(b, it.declaration)
	}
	for i := range rows {
		b = s.appendRow(b, &rows[i])
	}
	s.body = s.request.End(b)
	return s.body
}

func (s *sender) appendRow(b []byte, r *row) []byte {
	s.value = r.value.Append(s.value[:0])
	out := zbx.Row{
		Has: zbx.HasValue | zbx.HasClock | zbx.HasNS, ID: r.id, Value: s.value, Unsupported: r.unsupported,
		Clock: uint32(max(r.at, 0) / 1e9), NS: uint32(max(r.at, 0) % 1e9),
	}
	if r.item.id != 0 {
		out.Has |= zbx.HasItemID
		out.ItemID = r.item.id
	} else {
		out.Has |= zbx.HasKey
		out.Key = []byte(r.item.key)
		if r.item.declaration == nil { // A server before 4.4, which looks for the host here.
			out.Has |= zbx.HasHost
			out.Host = []byte(s.agent.options.Host)
		}
	}
	return s.request.Add(b, &out)
}

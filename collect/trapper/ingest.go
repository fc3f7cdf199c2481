package trapper

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"tidemark/model"
	"tidemark/wire/zbx"
)

const (
	// batchRows and batchArenaBytes end a batch, so that one request cannot be larger than the history cache.
	batchRows       = 16 << 10
	batchArenaBytes = 4 << 20
	// maxValueBytes bounds one value as received; preprocessing may make a smaller one of it.
	maxValueBytes = 16 << 20
	// maxErrorBytes bounds the reason of an unsupported item.
	maxErrorBytes = 2048
	second        = int64(time.Second)
)

var (
	// errRedeclare is returned for a key that our own agent must declare first.
	errRedeclare = errors.New("unknown item key; declare it first")
	// errNotDurable is returned when the values did not become durable in time.
	errNotDurable = errors.New("the values did not become durable in time")
)

// ingest turns the rows of one request into batches.
type ingest struct {
	s *Server
	c *conn
	// agent tells `agent data` from `sender data`.
	agent bool
	// declares is set for our own agent, which makes its items known itself; refused are the keys that it may not.
	declares bool
	refused  map[string]struct{}
	// arrived is when the request was read, Unix nanoseconds.
	arrived int64
	// withoutClock and withoutNS count the rows that lack them, so that each gets an instant of its own.
	withoutClock, withoutNS int64
	counts                  zbx.Counts

	// requestHost is the host of rows that name none.
	requestHost []byte
	// hostName and host are the host looked up last; known says whether it exists.
	// allowed whether the peer may speak for it.
	hostName       []byte
	host           HostRef
	known, allowed bool
	// proxy is set when a proxy sends; seenHost is the host of the value before.
	proxy    model.ProxyID
	seenHost model.HostID
	// token is the session of the request; held are its sessions, one per host.
	token []byte
	held  []heldSession
	logs  map[model.ItemID]logPosition

	batch *model.Batch
	done  *model.Completion
	// put says that a batch has been handed over.
	put bool
	row zbx.Row
}

// heldSession is a session whose lock this request holds.
type heldSession struct {
	*session
	// newestID is the newest id of this request.
	newestID uint64
}

// begin makes the ingest ready for a request; end must follow.
func (in *ingest) begin(s *Server, c *conn, agent bool) *ingest {
	*in = ingest{s: s, c: c, agent: agent, arrived: s.o.Now(), held: in.held[:0], done: model.NewCompletion()}
	in.newBatch()
	return in
}

func (in *ingest) newBatch() {
	in.batch = model.NewBatch()
	in.batch.ArrivedAt = in.arrived
}

// end gives back what the request held.
func (in *ingest) end() {
	for _, h := range in.held {
		in.s.sessions.release(h.session)
	}
	clear(in.held)
	if in.batch != nil {
		in.batch.Free()
	}
	*in = ingest{held: in.held[:0]}
}

func (in *ingest) fail(reason string) {
	in.counts.Failed++
	in.s.meters.refusedValues[reason].Inc()
}

// failRow refuses a row and says in the log, now and then, which one and why.
func (in *ingest) failRow(reason string, row *zbx.Row) {
	in.fail(reason)
	if suppressed, ok := in.s.quiet.allow("value/" + reason); ok {
		args := []any{"peer", in.c.RemoteAddr().String(), "reason", reason, "suppressed", suppressed, "host", clip(in.hostName)}
		if row.Has&zbx.HasItemID != 0 {
			args = append(args, "item", row.ItemID)
		} else {
			args = append(args, "key", clip(row.Key))
		}
		in.s.o.Log.Warn("trapper: a value is refused", args...)
	}
}

// setHost looks a host up, unless it is the one of the row before.
func (in *ingest) setHost(name []byte) {
	if in.hostName != nil && string(in.hostName) == string(name) {
		return
	}
	in.hostName = name
	in.host, in.known = in.s.o.Items.Host(name)
	in.allowed = in.known && in.s.allows(in.host.ID, in.c)
	if in.allowed {
		in.s.seen(in.host, in.arrived)
	}
}

// take takes one row. An error ends the request without success; a row that is refused is only counted.
func (in *ingest) take(ctx context.Context, row *zbx.Row) error {
	in.counts.Total++
	if row.Bad != "" {
		in.fail(badRow)
		return nil
	}
	if in.proxy != 0 {
		return in.fromProxy(ctx, row)
	}
	name := in.requestHost
	if row.Has&zbx.HasHost != 0 {
		name = row.Host
	}
	if len(name) == 0 {
		in.fail(noHost)
		return nil
	}
	in.setHost(name)
	if !in.known {
		in.failRow(unknownHost, row)
		return nil
	}
	if !in.allowed {
		in.s.kindRefused(in.c, name)
		in.fail(notAllowed)
		return nil
	}
	if in.agent {
		repeated, err := in.repeated(ctx, row.ID)
		if err != nil {
			return err
		}
		if repeated {
			in.fail(duplicate)
			return nil
		}
	}
	item, reason, err := in.item(ctx, row)
	if err != nil {
		return err
	}
	if reason != "" {
		in.failRow(reason, row)
		return nil
	}
	return in.value(ctx, row, item)
}

// repeated reports whether the session has delivered this id before.
func (in *ingest) repeated(ctx context.Context, id uint64) (bool, error) {
	if id == 0 || len(in.token) == 0 {
		return false, nil
	}
	var held *heldSession
	for i := range in.held {
		if in.held[i].key.host == in.host.ID {
			held = &in.held[i]
		}
	}
	if held == nil {
		s, err := in.s.sessions.hold(ctx, in.host.ID, in.token, in.arrived, len(in.held) == 0)
		if err != nil {
			return false, err
		}
		in.held = append(in.held, heldSession{session: s})
		held = &in.held[len(in.held)-1]
	}
	if id <= held.lastID {
		return true, nil
	}
	held.newestID = max(held.newestID, id)
	return false, nil
}

// item finds the item that a row names, or the reason why it cannot take the row.
func (in *ingest) item(ctx context.Context, row *zbx.Row) (ItemRef, string, error) {
	var item ItemRef
	var ok bool
	switch {
	case row.Has&zbx.HasItemID != 0:
		item, ok = in.s.o.Items.ItemByID(model.ItemID(row.ItemID))
	case row.Has&zbx.HasKey != 0:
		item, ok = in.s.o.Items.ItemByKey(in.host.ID, row.Key)
	}
	if !ok {
		if in.declares && row.Has&zbx.HasKey != 0 && in.host.Enabled {
			if _, refused := in.refused[string(row.Key)]; !refused {
				return item, "", errRedeclare
			}
		}
		return item, unknownItem, nil
	}
	if item.HostID != in.host.ID {
		return item, otherHost, nil
	}
	if item.Proxy != 0 {
		return item, otherProxy, nil
	}
	if !item.Enabled || !in.host.Enabled {
		return item, disabled, nil
	}
	if !item.accepts(in.agent) {
		return item, wrongType, nil
	}
	if !in.agent && item.AllowedHosts != "" && !in.s.allowed.holds(ctx, item.AllowedHosts, in.c.address()) {
		return item, notAllowed, nil
	}
	return item, "", nil
}

// accepts reports whether values of an item may come from agents or from senders.
func (i ItemRef) accepts(agent bool) bool {
	switch {
	case i.Kind == model.Declared:
		return true
	case agent:
		return i.Type == model.ActiveAgent
	}
	return i.Type == model.Trapper || i.Type == model.HTTPAgent && i.Trapping
}

// value appends a row's value to the batch.
func (in *ingest) value(ctx context.Context, row *zbx.Row, item ItemRef) error {
	if in.agent && row.Has&zbx.HasLastLogSize != 0 && !row.Unsupported {
		if in.logs == nil {
			in.logs = make(map[model.ItemID]logPosition)
		}
		in.logs[item.ID] = logPosition{row.LastLogSize, row.MTime}
	}
	if row.Has&zbx.HasValue == 0 {
		// A row without a value only says how far a log was read.
		if row.Has&zbx.HasLastLogSize == 0 || !in.agent {
			in.fail(noValue)
			return nil
		}
		in.counts.Processed++
		return nil
	}
	if len(row.Value) > maxValueBytes {
		in.fail(valueTooLong)
		return nil
	}
	at := in.at(row)
	switch {
	case row.Unsupported || string(row.Value) == zbx.NotSupported:
		in.batch.AppendBytes(item.ID, at, model.Unsupported, clipText(row.Value, maxErrorBytes))
		in.s.meters.unsupported.Inc()
	case item.ValueType == model.LogEntry:
		in.batch.AppendLog(item.ID, at, model.Log{
			At: row.Timestamp, Severity: row.Severity, EventID: row.EventID, Source: string(row.Source), Text: string(row.Value),
		})
	case item.ValueType == model.Binary:
		if !in.binary(item.ID, at, row.Value) {
			in.fail(badBinary)
			return nil
		}
	default:
		in.batch.AppendBytes(item.ID, at, model.Raw, row.Value)
	}
	in.counts.Processed++
	if in.batch.Len() >= batchRows || len(in.batch.Arena) >= batchArenaBytes {
		return in.handOver(ctx)
	}
	return nil
}

// binary appends a value that travels in base64.
func (in *ingest) binary(item model.ItemID, at int64, text []byte) bool {
	arena := in.batch.Arena
	grown, err := base64.StdEncoding.AppendDecode(arena, text)
	if err != nil {
		return false
	}
	in.batch.Arena = grown
	in.batch.Append(item, at, model.Binary, model.Span(len(arena), len(grown)-len(arena)))
	return true
}

// at returns the time of a row. A row without clock gets the time of arrival; one with clock but without ns the
// next free part of that second. Both count over the whole request, so that values of one second stay apart, and the same
// request sent again gets the same times.
func (in *ingest) at(row *zbx.Row) int64 {
	if row.Has&zbx.HasClock == 0 {
		at := in.arrived + in.withoutClock
		in.withoutClock++
		return at
	}
	at := int64(row.Clock) * second
	if row.Has&zbx.HasNS == 0 {
		at += in.withoutNS
		in.withoutNS++
		return at
	}
	return at + int64(row.NS)
}

// clipText cuts text to limit bytes, not inside a character.
func clipText(text []byte, limit int) []byte {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// handOver Puts the batch and starts a new one.
func (in *ingest) handOver(ctx context.Context) error {
	in.done.Add(1)
	in.batch.Done = append(in.batch.Done, in.done)
	if err := in.s.o.Sink.Put(ctx, in.batch); err != nil {
		clear(in.batch.Done)
		in.batch.Done = in.batch.Done[:0]
		return fmt.Errorf("hand over %d values: %w", in.batch.Len(), err)
	}
	in.put = true
	in.newBatch()
	return nil
}

// store hands over what is left, waits until all of the request is durable, and then moves its sessions and logs on.
// After an error nothing has moved on, and the peer may send all of it again.
func (in *ingest) store(ctx context.Context) error {
	for _, h := range in.held {
		if h.newestID > h.lastID {
			in.batch.Marks = append(in.batch.Marks, h.mark(h.newestID, in.arrived))
		}
	}
	for item, p := range in.logs {
		in.batch.Marks = append(in.batch.Marks, p.mark(item, in.arrived))
	}
	if in.batch.Len() > 0 || len(in.batch.Marks) > 0 {
		if err := in.handOver(ctx); err != nil {
			return err
		}
	}
	if err := in.durable(); err != nil {
		return err
	}
	for _, h := range in.held {
		if h.newestID > h.lastID {
			h.lastID = h.newestID
		}
	}
	for item, p := range in.logs {
		in.s.logs.set(item, p)
	}
	in.s.meters.processed.Add(int(in.counts.Processed))
	return nil
}

// durable waits for the batches that were handed over. It waits through the end of the server too, because the stages
// behind it stop later.
func (in *ingest) durable() error {
	if !in.put {
		return nil
	}
	in.done.Finish(nil)
	started := time.Now()
	timer := time.NewTimer(in.s.o.StoreTimeout)
	defer timer.Stop()
	select {
	case <-in.done.Done():
		in.s.meters.stored.UpdateDuration(started)
		return in.done.Err()
	case <-timer.C:
		return errNotDurable
	}
}

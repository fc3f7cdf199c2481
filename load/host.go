package load

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"tidemark/wire/zbx"
)

const (
	// retryAfter is the pause after a broken connection.
	retryAfter = 200 * time.Millisecond
	// agentVersion is what the agents of the load say they are.
	agentVersion = "6.0"
)

// host is one sender or agent.
type host struct {
	o        *Options
	name     string
	t        *tally
	slots    chan struct{}
	schedule *Schedule
	walks    []Walk
	// heads are the beginnings of the rows up to the value, one per item.
	heads   [][]byte
	session string
	lastID  uint64
	// offset spreads the hosts over the tick.
	offset   time.Duration
	due      []Due
	body     []byte
	frame    []byte
	frames   zbx.FrameReader
	answered uint64
}

func newHost(o *Options, h int, t *tally, slots chan struct{}) *host {
	s := &host{
		o: o, name: HostName(h), t: t, slots: slots, schedule: NewSchedule(o, h), walks: make([]Walk, o.Items),
		offset: tick * time.Duration(h) / time.Duration(o.Hosts),
	}
	for i := range s.walks {
		s.walks[i] = NewWalk(h, i)
	}
	return s
}

// run sends until the time is over and everything due is answered.
func (s *host) run(ctx context.Context) error {
	end := int64(1<<63 - 1)
	sending, cancel := ctx, context.CancelFunc(func() {})
	if s.o.Seconds > 0 {
		end = s.o.Start.Add(time.Duration(s.o.Seconds * float64(time.Second))).UnixNano()
		sending, cancel = context.WithDeadline(ctx, time.Unix(0, end).Add(s.o.Drain))
	}
	if s.o.Finish {
		cancel()
		sending, cancel = finishing(ctx, s.o.Drain)
	}
	defer cancel()
	if err := s.prepare(sending); err != nil {
		return s.ended(ctx, err)
	}
	for next := s.o.Start.Add(s.offset); ; next = next.Add(tick) {
		if !sleepUntil(ctx, next) {
			return nil
		}
		now := time.Now().UnixNano()
		if err := s.sendDue(ctx, sending, min(now, end)); err != nil {
			return s.ended(ctx, err)
		}
		if now >= end {
			return nil
		}
	}
}

// ended tells the end that the user asked for from one that is a failure.
func (s *host) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", ErrUnfinished, err)
	}
	return fmt.Errorf("host %s: %w", s.name, err)
}

func sleepUntil(ctx context.Context, t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// prepare builds the beginnings of the rows; an agent asks for its list first.
func (s *host) prepare(ctx context.Context) error {
	s.heads = make([][]byte, s.o.Items)
	if s.o.Protocol == Sender {
		for i := range s.heads {
			head := zbx.AppendString([]byte(`{"host":`), s.name)
			head = zbx.AppendString(append(head, `,"key":`...), ItemKey(i))
			s.heads[i] = append(head, `,"value":"`...)
		}
		return nil
	}
	var token [16]byte
	if _, err := rand.Read(token[:]); err != nil {
		return err
	}
	s.session = hex.EncodeToString(token[:])
	s.body = zbx.AppendActiveChecks(s.body[:0], &zbx.Request{
		Host: []byte(s.name), Version: []byte(agentVersion),
	})
	a, err := s.ask(ctx)
	if err != nil {
		return err
	}
	if !a.Success {
		return fmt.Errorf("the server gives no list of active checks: %s; provision the hosts first", a.Info)
	}
	ids := make(map[string]uint64, len(a.Checks))
	for i := range a.Checks {
		ids[a.Checks[i].Key] = a.Checks[i].ItemID
	}
	for i := range s.heads {
		id, ok := ids[ItemKey(i)]
		if !ok {
			return fmt.Errorf("the server's list has no %s among %d active checks; provision the items first", ItemKey(i), len(a.Checks))
		}
		s.heads[i] = append(strconv.AppendUint([]byte(`,"itemid":`), id, 10), `,"value":"`...)
	}
	return nil
}

// finishing ends some time after ctx does.
func finishing(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-later.Done():
		}
	})
	return later, func() { stop(); cancel() }
}

// sendDue sends everything that is due before a time, or what is under way when ctx ends.
func (s *host) sendDue(ctx, sending context.Context, before int64) error {
	for ctx.Err() == nil {
		s.due = s.schedule.Take(s.due[:0], before, s.o.BatchRows)
		if len(s.due) == 0 {
			return nil
		}
		s.build()
		if err := s.deliver(sending, uint64(len(s.due))); err != nil {
			return err
		}
	}
	return nil
}

// build makes the request of s.due.
func (s *host) build() {
	b := s.body[:0]
	if s.o.Protocol == Sender {
		b = append(b, `{"request":"sender data","data":[`...)
	} else {
		b = append(b, `{"request":"agent data","data":[`...)
	}
	for n, d := range s.due {
		if n > 0 {
			b = append(b, ',')
		}
		if s.o.Protocol == Agent {
			s.lastID++
			b = strconv.AppendUint(append(b, `{"id":`...), s.lastID, 10)
		}
		b = append(b, s.heads[d.Item]...)
		if value := s.walks[d.Item].Next(); IsString(d.Item, s.o.Strings) {
			b = AppendState(b, value)
		} else {
			b = AppendValue(b, value)
		}
		b = strconv.AppendInt(append(b, `","clock":`...), d.At/1e9, 10)
		b = strconv.AppendInt(append(b, `,"ns":`...), d.At%1e9, 10)
		b = append(b, '}')
	}
	if s.o.Protocol == Sender {
		s.body = append(b, "]}"...)
		return
	}
	b = append(b, `],"session":"`...)
	b = append(b, s.session...)
	b = append(b, `","host":"`...)
	b = append(b, s.name...)
	s.body = append(b, `","version":"`+agentVersion+`"}`...)
}

// deliver sends s.body until the server has taken it. What a repeated request has failed are the values that the
// server had taken the first time, before the connection broke.
func (s *host) deliver(ctx context.Context, rows uint64) error {
	for attempt := 0; ; attempt++ {
		a, latency, err := s.exchange(ctx)
		if err == nil && !a.Success && s.answered > 0 {
			// A server that took values before and takes none now was replaced or waits: agents keep their values and send again.
			err = fmt.Errorf("the server refuses values: %s", a.Info)
		}
		if err == nil && (!a.Success || !a.HasCounts || a.Counts.Total != rows) {
			return fmt.Errorf("unexpected answer: success %v, info %q, expected counts of %d values", a.Success, a.Info, rows)
		}
		if err == nil {
			if attempt > 0 && s.o.Protocol == Agent {
				a.Counts.Processed, a.Counts.Failed = a.Counts.Total, 0
			}
			s.answered += rows
			s.t.add(a.Counts, latency)
			return nil
		}
		s.t.retry()
		if !sleepUntil(ctx, time.Now().Add(retryAfter)) {
			return errors.Join(err, ctx.Err())
		}
	}
}

// ask sends s.body, again when the connection breaks.
func (s *host) ask(ctx context.Context) (zbx.Answer, error) {
	for {
		a, _, err := s.exchange(ctx)
		if err == nil {
			return a, nil
		}
		s.t.retry()
		if !sleepUntil(ctx, time.Now().Add(retryAfter)) {
			return a, errors.Join(err, ctx.Err())
		}
	}
}

// exchange sends s.body once, as soon as a connection is free, and returns the answer and the time from connect to
// answer.
func (s *host) exchange(ctx context.Context) (a zbx.Answer, latency time.Duration, err error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return a, 0, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	began := time.Now()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", s.o.Server)
	if err != nil {
		return a, 0, err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	if err := c.SetDeadline(deadline); err != nil {
		return a, 0, err
	}
	s.frame = zbx.AppendFrame(s.frame[:0], s.body)
	if _, err := c.Write(s.frame); err != nil {
		return a, 0, err
	}
	_, body, err := s.frames.Read(c)
	if err != nil {
		return a, 0, fmt.Errorf("read the answer: %w", err)
	}
	latency = time.Since(began)
	a, err = zbx.DecodeAnswer(body)
	return a, latency, err
}

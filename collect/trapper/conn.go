package trapper

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"tidemark/collect"
	"tidemark/wire/zbx"
)

// conn is one connection.
type conn struct {
	net.Conn
	opened time.Time
	// reading is set until the request has arrived; only then may the connection be cut.
	reading atomic.Bool
	// evicted is set when the connection was cut to make room for others.
	evicted atomic.Bool
	// reservedBytes is what the request has taken of the budget; for the connection's own goroutine.
	reservedBytes int64
	// peer is who is at the other end; unencrypted until a TLS handshake is done.
	peer collect.Peer
	// raw is set when the request came without a header; so goes the answer.
	raw bool
}

const (
	// readBufferBytes holds a header and, most often, a small request.
	readBufferBytes = 4096
	// maxTextBytes bounds a request without a header.
	maxTextBytes = 1 << 20
	// tlsHandshake is the first byte of a TLS connection.
	tlsHandshake = 0x16
	// lingerTimeout and lingerBytes bound how long the server waits, after its answer, for the peer to close.
	lingerTimeout = time.Second
	lingerBytes   = 64 << 10
	// batchFactor is how much of a request's size its batch may take besides.
	batchFactor = 2
)

// worker is what a connection needs while its request is served; workers are pooled.
type worker struct {
	reader *bufio.Reader
	frames zbx.FrameReader
	zip    zbx.FrameWriter
	text   []byte
	// answer is the body of the answer, out its frame.
	answer, out []byte
	// squeeze has the answer compressed even if the request was not.
	squeeze bool
	// settle, if not nil, hears what the peer says to the answer.
	settle func(answer []byte, err error) error
	// unsent, if not nil, is called when the answer did not go out.
	unsent func()
	ingest ingest
}

func newWorker(s *Server) *worker {
	w := &worker{reader: bufio.NewReaderSize(nil, readBufferBytes)}
	w.frames.MaxBodyBytes = s.o.MaxBodyBytes
	w.frames.MaxInflatedBytes = s.o.MaxBodyBytes
	return w
}

// handle serves the one request of a connection.
func (s *Server) handle(ctx context.Context, c *conn) {
	w := s.workers.Get().(*worker)
	w.reader.Reset(c)
	defer func() {
		s.giveBack(c)
		w.reader.Reset(nil)
		w.frames.Reserve = nil
		w.frames.Shrink()
		if cap(w.answer) <= 1<<20 && cap(w.out) <= 1<<20 && cap(w.text) <= 1<<20 {
			s.workers.Put(w)
		}
	}()
	h, body, err := s.read(ctx, c, w)
	c.reading.Store(false)
	if err != nil {
		s.unreadable(c, err)
		return
	}
	s.meters.received.Add(len(body))
	w.answer, w.squeeze, w.settle, w.unsent = w.answer[:0], false, nil, nil
	s.serve(ctx, c, w, body)
	s.giveBack(c)
	if len(w.answer) == 0 {
		return
	}
	err = s.write(c, w, h)
	if w.settle != nil {
		s.hearVerdict(ctx, c, w, err)
	}
	if err != nil {
		w.giveBackTasks()
		s.refuse(c, answerFailed, "the answer did not reach the peer", "error", err)
		return
	}
	linger(c)
}

// giveBackTasks says that the answer did not go out.
func (w *worker) giveBackTasks() {
	if w.unsent != nil {
		w.unsent()
	}
	w.unsent = nil
}

// giveBack returns the memory of the connection's request to the budget.
func (s *Server) giveBack(c *conn) {
	s.budget.give(c.reservedBytes)
	c.reservedBytes = 0
}

// setReadDeadline sets the deadline unless the connection has been cut.
func (s *Server) setReadDeadline(ctx context.Context, c *conn, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := time.Now().Add(after)
	if ctx.Err() != nil || c.evicted.Load() {
		t = time.Unix(1, 0)
	}
	// A failure shows in the next read.
	_ = c.SetReadDeadline(t)
}

// errTLS is what read returns for a peer that speaks TLS.
var errTLS = errors.New("the peer starts TLS, which this listener does not speak; set TLSConnect=unencrypted on the agent")

// read reads the request. The body is valid until the worker reads the next one.
func (s *Server) read(ctx context.Context, c *conn, w *worker) (zbx.Header, []byte, error) {
	s.setReadDeadline(ctx, c, s.o.FirstByteTimeout)
	start, err := w.reader.Peek(1)
	if err != nil {
		return zbx.Header{}, nil, err
	}
	if start[0] == tlsHandshake {
		if s.o.TLS == nil {
			return zbx.Header{}, nil, errTLS
		}
		if err := s.startTLS(ctx, c, w); err != nil {
			return zbx.Header{}, nil, err
		}
		if _, err := w.reader.Peek(1); err != nil {
			return zbx.Header{}, nil, err
		}
	}
	s.setReadDeadline(ctx, c, s.o.ReadTimeout)
	start, err = w.reader.Peek(4)
	if err != nil && !(errors.Is(err, io.EOF) && start[0] != 'Z') {
		return zbx.Header{}, nil, err
	}
	w.frames.Reserve = func(n int) error { return s.reserve(ctx, c, n) }
	if string(start) == "ZBXD" {
		return w.frames.Read(w.reader)
	}
	c.raw = true
	w.text, err = s.readText(ctx, c, w.reader, w.text[:0])
	return zbx.Header{}, w.text, err
}

// reserve takes memory for n bytes of a request and for the batch that they become.
func (s *Server) reserve(ctx context.Context, c *conn, n int) error {
	need := int64(n) * (1 + batchFactor)
	if c.reservedBytes == 0 {
		ctx, cancel := context.WithTimeout(ctx, s.o.FirstByteTimeout)
		defer cancel()
		if s.budget.wait(ctx, need) != nil {
			return &zbx.ReserveError{Bytes: n}
		}
	} else if !s.budget.try(need, c.reservedBytes) {
		return &zbx.ReserveError{Bytes: n}
	}
	c.reservedBytes += need
	return nil
}

// readText reads a request without a header: a line, two lines for active checks, or JSON up to the end.
func (s *Server) readText(ctx context.Context, c *conn, r *bufio.Reader, dst []byte) ([]byte, error) {
	for {
		line, err := r.ReadSlice('\n')
		if err := s.reserve(ctx, c, len(line)); err != nil {
			return dst, err
		}
		dst = append(dst, line...)
		if len(dst) > maxTextBytes {
			return dst, &zbx.FrameError{Reason: zbx.ReasonTooLarge, Want: "request without a header is longer than 1 MiB"}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return dst, nil
		case err != nil:
			return dst, err
		}
		if string(dst) != zbx.TextChecksPrefix && dst[0] != '{' {
			return dst, nil
		}
	}
}

// unreadable counts and logs a request that did not arrive.
func (s *Server) unreadable(c *conn, err error) {
	var fe *zbx.FrameError
	var re *zbx.ReserveError
	switch {
	case c.evicted.Load():
		s.refuse(c, evicted, "a slow connection was closed to make room for others")
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.refuse(c, timedOut, "the request did not arrive in time")
	case errors.Is(err, errHandshake):
		s.refusedHandshake(c, err)
	case errors.Is(err, errTLS):
		s.refuse(c, tlsUnsupported, err.Error())
	case errors.As(err, &fe):
		s.refuse(c, fe.Reason, "the request is no acceptable frame", "error", err)
	case errors.As(err, &re):
		s.refuse(c, noMemory, "too many requests at once; the peer will try again", "limit_bytes", s.o.MaxInFlightBytes)
	}
	// What is left are peers that opened a connection and closed it, as port checks do.
}

// write sends the answer, compressed when the request was.
func (s *Server) write(c *conn, w *worker, h zbx.Header) error {
	out := w.answer
	switch {
	case c.raw:
	case h.Compressed() || w.squeeze:
		w.out = w.zip.AppendCompressed(w.out[:0], w.answer)
		out = w.out
	default:
		w.out = zbx.AppendFrame(w.out[:0], w.answer)
		out = w.out
	}
	if err := c.SetWriteDeadline(time.Now().Add(s.o.WriteTimeout)); err != nil {
		return err
	}
	_, err := c.Write(out)
	return err
}

// linger waits a moment for the peer to close first: closing with bytes unread would make the kernel reset the
// connection, and the peer could lose the answer.
func linger(c *conn) {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		return
	}
	if c.SetReadDeadline(time.Now().Add(lingerTimeout)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c, lingerBytes)
}

// serve answers one request into w.answer; an empty answer closes the connection without a word.
func (s *Server) serve(ctx context.Context, c *conn, w *worker, body []byte) {
	if len(body) == 0 {
		s.refuse(c, badForm, "the request is empty")
		return
	}
	if t := zbx.DecodeText(body); t.Form != zbx.NoText {
		s.meters.requests["text"].Inc()
		s.text(ctx, c, w, t)
		return
	}
	r, err := zbx.DecodeRequest(body)
	if err != nil {
		s.refuse(c, badSyntax, "the request cannot be read", "error", err)
		w.answer = zbx.AppendFailed(w.answer, "cannot read the request: "+err.Error())
		return
	}
	if counter := s.meters.requests[string(r.Name)]; counter != nil {
		counter.Inc()
	} else {
		s.meters.requests["other"].Inc()
	}
	if reason := s.refusal(); reason != nil && string(r.Name) != zbx.Heartbeat {
		s.refuse(c, notPrimary, "another server has the place of this one; the peer keeps its values", "request", clip(r.Name))
		w.answer = zbx.AppendFailed(w.answer, reason.Error())
		return
	}
	if s.o.Passive != nil && (string(r.Name) == zbx.ProxyConfig || string(r.Name) == zbx.ProxyData || string(r.Name) == zbx.ProxyTasks) {
		if r.Tables == nil {
			r.Tables = body
		}
		s.passive(ctx, c, w, &r)
		return
	}
	switch string(r.Name) {
	case zbx.SenderData, zbx.AgentData:
		s.data(ctx, c, w, &r)
	case zbx.ActiveChecks:
		s.activeChecks(ctx, c, w, &r)
	case zbx.Heartbeat:
		s.heartbeat(c, &r)
	case zbx.ProxyConfig, zbx.ProxyData, zbx.ProxyHeartbeat:
		s.proxy(ctx, c, w, &r)
	default:
		s.refuse(c, unknownRequest, "the request is none that this server answers", "request", clip(r.Name))
		w.answer = zbx.AppendFailed(w.answer, "unsupported request '"+clip(r.Name)+"'")
	}
}

// refusal says why nothing is taken; nil when it is.
func (s *Server) refusal() error {
	if s.o.Refusal == nil {
		return nil
	}
	return s.o.Refusal()
}

// clip makes a foreign name short enough for logs and answers.
func clip(name []byte) string {
	const limit = 255
	if len(name) > limit {
		return string(name[:limit]) + "…"
	}
	return string(name)
}

// heartbeat has no answer: the connection just closes.
func (s *Server) heartbeat(c *conn, r *zbx.Request) {
	host, ok := s.o.Items.Host(r.Host)
	if !ok {
		s.refuse(c, unknownAgent, "heartbeat of an unknown host", "host", clip(r.Host))
		return
	}
	if !s.allows(host.ID, c) {
		s.kindRefused(c, r.Host)
		return
	}
	s.seen(host, s.o.Now())
}

func (s *Server) seen(host HostRef, at int64) {
	if host.Enabled && s.o.Presence != nil {
		s.o.Presence.Seen(host.ID, at)
	}
}

// text serves the two requests from before JSON.
func (s *Server) text(ctx context.Context, c *conn, w *worker, t zbx.TextRequest) {
	c.raw = true
	if t.Form == zbx.TextActiveChecks {
		s.textChecks(c, w, t)
		return
	}
	in := w.ingest.begin(s, c, false)
	defer in.end()
	row := zbx.Row{Has: zbx.HasHost | zbx.HasKey | zbx.HasValue, Host: t.Host, Key: t.Key, Value: t.Value}
	row.Unsupported = string(t.Value) == zbx.NotSupported
	err := in.take(ctx, &row)
	if err == nil {
		err = in.store(ctx)
	}
	switch {
	case err != nil:
		s.refuse(c, notStored, "values were not stored; the peer will send them again", "error", err)
	case in.counts.Processed == 1:
		w.answer = append(w.answer, "OK"...)
	default:
		w.answer = append(w.answer, "FAIL"...)
	}
}

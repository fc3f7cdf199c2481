package scrape

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"
)

const (
	// maxHeaderBytes bounds the headers of an answer.
	maxHeaderBytes = 1 << 20
	// maxInformational bounds the answers before the answer, such as 103 Early Hints.
	maxInformational = 5
	// maxDrainBytes is what may be left of an answer behind its end, for the connection to be kept.
	maxDrainBytes = 4 << 10
	// keepFor is the longest interval over which a connection is kept.
	keepFor = 5 * time.Minute
)

// line is the connection to a target that is asked without encryption, kept between its scrapes. net/http's own has two goroutines for each, and
// handing every request and answer over between three costs about as much as reading the answer. It belongs to the goroutine of its target.
type line struct {
	dialer  *net.Dialer
	address string
	nc      net.Conn
}

// readers buffer what comes while a scrape is under way; nothing is left in them between two.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 32<<10) }}

// get asks and calls take with the answer, whose body is good until take returns.
func (l *line) get(ctx context.Context, r *http.Request, take func(*http.Response) error) error {
	deadline, _ := ctx.Deadline()
	for {
		kept := l.nc != nil
		if !kept {
			nc, err := l.dialer.DialContext(ctx, "tcp", l.address)
			if err != nil {
				return failed(ctx, r, err)
			}
			l.nc = nc
		}
		answered, err := l.exchange(ctx, r, deadline, take)
		switch {
		case err == nil:
			return nil
		case answered && errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("read the answer: %w", context.DeadlineExceeded)
		case answered:
			return err
		case kept && ctx.Err() == nil && !errors.Is(err, os.ErrDeadlineExceeded):
			// The target closed the connection since the last scrape.
		default:
			return failed(ctx, r, err)
		}
	}
}

// failed is the error as net/http's client returns it.
func failed(ctx context.Context, r *http.Request, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = context.DeadlineExceeded
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return &url.Error{Op: "Get", URL: r.URL.Redacted(), Err: err}
}

// exchange sends the request and reads the answer. answered says that there was one, and that the error is that of take.
func (l *line) exchange(ctx context.Context, r *http.Request, deadline time.Time, take func(*http.Response) error) (answered bool, err error) {
	nc := l.nc
	if err := nc.SetDeadline(deadline); err != nil {
		l.close()
		return false, err
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	keep := false
	defer func() {
		if !stop() || !keep || nc.SetDeadline(time.Time{}) != nil {
			l.close()
		}
	}()
	limit := &io.LimitedReader{R: nc, N: maxHeaderBytes}
	in := readers.Get().(*bufio.Reader)
	in.Reset(limit)
	defer func() { in.Reset(nil); readers.Put(in) }()
	out := bufio.NewWriterSize(nc, 1024)
	if err := r.Write(out); err != nil {
		return false, err
	}
	if err := out.Flush(); err != nil {
		return false, err
	}
	answer, err := readAnswer(in, r)
	if err != nil {
		if limit.N == maxHeaderBytes && errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF // It closed without a word.
		}
		return false, err
	}
	// The body is not closed, which would read it to its end; the connection is. It is bounded by who takes it.
	limit.N = math.MaxInt64
	if err := take(answer); err != nil {
		return true, err
	}
	left, err := io.CopyN(io.Discard, answer.Body, maxDrainBytes)
	keep = err == io.EOF && left < maxDrainBytes && !answer.Close && in.Buffered() == 0
	return true, nil
}

func readAnswer(in *bufio.Reader, r *http.Request) (*http.Response, error) {
	for range maxInformational {
		answer, err := http.ReadResponse(in, r)
		if err != nil {
			return nil, err
		}
		if answer.StatusCode >= 200 || answer.StatusCode == http.StatusSwitchingProtocols {
			return answer, nil
		}
	}
	return nil, errors.New("too many informational answers")
}

func (l *line) close() {
	if l.nc != nil {
		_ = l.nc.Close() // nothing was to be sent
		l.nc = nil
	}
}

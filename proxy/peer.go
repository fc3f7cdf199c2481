package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"tidemark/internal/tlsdial"
	"tidemark/wire/zbx"
)

const (
	// exchangeTimeout bounds one exchange with the server, which answers values after they are stored.
	exchangeTimeout = 2 * time.Minute
	// maxConfigurationBytes bounds a configuration, maxAnswerBytes other answers: with one come up to 4 commands of 64 KiB, in JSON six times that
	// at worst, and 1000 items to ask for.
	maxConfigurationBytes = 128 << 20
	maxAnswerBytes        = 2 << 20
)

// peer speaks to the server: one request, one answer, one connection. It is for one goroutine at a time.
type peer struct {
	address string
	dial    tlsdial.Dial
	frame   []byte
	reader  zbx.FrameReader
	writer  zbx.FrameWriter
}

func newPeer(address string, dial tlsdial.Dial, limit int) *peer {
	p := &peer{address: address, dial: dial}
	p.reader.MaxBodyBytes, p.reader.MaxInflatedBytes = limit, limit
	return p
}

// exchange sends a body, compressed, and reads the answer, which is valid until the next call.
func (p *peer) exchange(ctx context.Context, body []byte) ([]byte, error) {
	conn, err := p.dial(ctx, p.address)
	if err != nil {
		return nil, fmt.Errorf("connect to the server: %w", err)
	}
	defer conn.Close()                                                               //nolint:errcheck // the answer is read or the exchange failed
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // ends a read or write at once
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(exchangeTimeout)); err != nil {
		return nil, fmt.Errorf("set the time limit: %w", err)
	}
	p.frame = p.writer.AppendCompressed(p.frame[:0], body)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if _, err := conn.Write(p.frame); err != nil {
		return nil, fmt.Errorf("send to the server: %w", err)
	}
	if cap(p.frame) > 4<<20 {
		p.frame = nil
	}
	_, answer, err := p.reader.Read(conn)
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the server closed the connection without an answer")
	}
	if err != nil {
		return nil, fmt.Errorf("read the server's answer: %w", err)
	}
	return answer, nil
}

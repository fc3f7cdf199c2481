package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"tidemark/wire/zbx"
)

// exchangeTimeout bounds one exchange with the server.
const exchangeTimeout = 30 * time.Second

// compressAbove is the size from which bodies to servers elsewhere are compressed.
const compressAbove = 1 << 10

// maxAnswerBytes bounds an answer; a list of 100,000 items has some 20 MB.
const maxAnswerBytes = 32 << 20

// peer speaks to the server: one request, one answer, one connection, as the protocol has it. It is for one goroutine
// at a time.
type peer struct {
	address string
	near    bool // on this machine
	dial    func(ctx context.Context, address string) (net.Conn, error)
	frame   []byte
	reader  zbx.FrameReader
	writer  zbx.FrameWriter
}

func newPeer(address string, dial func(ctx context.Context, address string) (net.Conn, error)) *peer {
	p := &peer{address: address, dial: dial}
	p.reader.MaxBodyBytes, p.reader.MaxInflatedBytes = maxAnswerBytes, maxAnswerBytes
	if host, _, err := net.SplitHostPort(address); err == nil {
		ip := net.ParseIP(host)
		p.near = host == "localhost" || ip != nil && ip.IsLoopback()
	}
	return p
}

// exchange sends a body and reads the answer. Without an answer, as after a heartbeat, it returns io.EOF.
func (p *peer) exchange(ctx context.Context, body []byte) (zbx.Answer, error) {
	conn, err := p.dial(ctx, p.address)
	if err != nil {
		return zbx.Answer{}, fmt.Errorf("connect to server: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) }) // Ends a read or write at once.
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(exchangeTimeout)); err != nil {
		return zbx.Answer{}, fmt.Errorf("set the time limit: %w", err)
	}
	if !p.near && len(body) > compressAbove {
		p.frame = p.writer.AppendCompressed(p.frame[:0], body)
	} else {
		p.frame = zbx.AppendFrame(p.frame[:0], body)
	}
	if ctx.Err() != nil {
		return zbx.Answer{}, ctx.Err()
	}
	if _, err := conn.Write(p.frame); err != nil {
		return zbx.Answer{}, fmt.Errorf("send to server: %w", err)
	}
	_, answer, err := p.reader.Read(conn)
	if errors.Is(err, io.EOF) {
		return zbx.Answer{}, io.EOF
	}
	if err != nil {
		return zbx.Answer{}, fmt.Errorf("read the server's answer: %w", err)
	}
	a, err := zbx.DecodeAnswer(answer)
	if err != nil {
		return a, fmt.Errorf("read the server's answer: %w", err)
	}
	p.reader.Shrink()
	return a, nil
}

package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/collect"
	"tidemark/collect/trapper"
	"tidemark/internal/tlspsk"
	"tidemark/model"
	"tidemark/wire/zbx"
)

const (
	// askEvery is how often a passive proxy is asked for what it has, askPause and askPauseLimit the pauses while it does not answer.
	askEvery      = time.Second
	askPause      = time.Second
	askPauseLimit = 15 * time.Second
	// compareEvery is how often it is looked whether a proxy is to do something else, besides changes of hosts, which are seen within
	// compareSoon; a proxy is told again after tellAgain whatever it knows.
	compareEvery = time.Minute
	compareSoon  = 5 * time.Second
	tellAgain    = time.Hour
	// connectTime and tellTime bound the way to a proxy, and what it makes of a configuration.
	connectTime = 10 * time.Second
	tellTime    = 2 * time.Minute
	// maxProxyAnswerBytes bounds what a proxy says to a configuration.
	maxProxyAnswerBytes = 64 << 10
)

// passiveProxies asks the proxies that wait to be asked, and tells them what to do.
type passiveProxies struct {
	proxies *proxies
	trapper *trapper.Server
	// certificates are the server's own certificate and the authorities of proxies; nil for none.
	certificates *tls.Config
	refusal      func() error
	logger       *slog.Logger

	asked, failed *metrics.Counter
}

func (s *Server) newPassiveProxies() *passiveProxies {
	return &passiveProxies{
		proxies: s.proxies, trapper: s.trapper, certificates: s.o.Certificates, refusal: s.refusal, logger: s.logger,
		asked:  s.metrics.NewCounter("tidemark_proxies_asked_total"),
		failed: s.metrics.NewCounter("tidemark_proxies_failed_questions_total"),
	}
}

// Run asks until ctx ends.
func (p *passiveProxies) Run(ctx context.Context) error {
	var work sync.WaitGroup
	defer work.Wait()
	running := make(map[model.ProxyID]string)
	ended := make(chan model.ProxyID)
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		for _, known := range p.proxies.list() {
			if _, runs := running[known.ID]; runs || known.Address == "" {
				continue
			}
			running[known.ID] = known.Address
			work.Go(func() {
				p.serve(ctx, known.Proxy)
				select {
				case ended <- known.ID:
				case <-ctx.Done():
				}
			})
		}
		select {
		case <-ctx.Done():
			return nil
		case id := <-ended:
			delete(running, id)
		case <-tick.C:
		}
	}
}

// told is what a proxy was told to do last.
type told struct {
	// sum is that of the configuration without the positions of logs.
	sum      [sha256.Size]byte
	at       time.Time
	looked   time.Time
	revision uint64
	session  string
}

// serve asks one proxy until ctx ends, or the proxy is gone or is to be asked elsewhere.
func (p *passiveProxies) serve(ctx context.Context, known model.Proxy) {
	var last told
	pause := askPause
	for ctx.Err() == nil && p.proxies.address(known.ID) == known.Address {
		more, err := p.round(ctx, &known, &last)
		if ctx.Err() != nil {
			return
		}
		p.proxies.answered(known.ID, err)
		switch {
		case err != nil:
			p.failed.Inc()
			sleep(ctx, pause)
			pause = min(2*pause, askPauseLimit)
		case more:
			pause = askPause
		default:
			pause = askPause
			sleep(ctx, askEvery)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// round asks a proxy once, and tells it what to do when that changed. more says that it has more to give.
func (p *passiveProxies) round(ctx context.Context, known *model.Proxy, last *told) (more bool, err error) {
	if p.refusal != nil && p.refusal() != nil {
		return false, nil // another server asks it
	}
	if p.proxies.Takes(known.ID, false) {
		p.asked.Inc()
		nc, kind, err := p.connect(ctx, known)
		if err != nil {
			return false, err
		}
		more, err = p.trapper.Fetch(ctx, known.ID, known.Name, nc, collect.Peer{Kind: kind})
		_ = nc.Close()
		if err != nil {
			return false, err
		}
	}
	return more, p.configure(ctx, known, last)
}

// configure tells a proxy what to do, when that is not what it was told last.
func (p *passiveProxies) configure(ctx context.Context, known *model.Proxy, last *told) error {
	version, session := p.proxies.said(known.ID)
	revision, now := p.proxies.cache.Snapshot().Revision(), time.Now()
	since := now.Sub(last.looked)
	if version == "" || since < compareSoon || since < compareEvery && revision == last.revision && session == last.session {
		return nil
	}
	last.looked, last.revision = now, revision
	plain, err := p.proxies.encode(nil, known.ID, version, func(model.ItemID) (uint64, uint64) { return 0, 0 })
	if err != nil {
		return err
	}
	sum := sha256.Sum256(plain)
	if sum == last.sum && session == last.session && now.Sub(last.at) < tellAgain {
		return nil
	}
	body, err := p.proxies.encode([]byte(`{"request":"proxy config","data":`), known.ID, version, p.trapper.LogPosition)
	if err != nil {
		return err
	}
	if err := p.tell(ctx, known, append(body, '}')); err != nil {
		return fmt.Errorf("give the proxy its configuration: %w", err)
	}
	last.sum, last.at, last.session = sum, now, session
	p.proxies.configured(known.ID)
	return nil
}

// tell sends a proxy its configuration and hears what it makes of it.
func (p *passiveProxies) tell(ctx context.Context, known *model.Proxy, body []byte) error {
	nc, _, err := p.connect(ctx, known)
	if err != nil {
		return err
	}
	defer nc.Close() //nolint:errcheck // the answer is read or the exchange failed
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := nc.SetDeadline(time.Now().Add(tellTime)); err != nil {
		return err
	}
	var w zbx.FrameWriter
	if _, err := nc.Write(w.AppendCompressed(nil, body)); err != nil {
		return err
	}
	r := zbx.FrameReader{MaxBodyBytes: maxProxyAnswerBytes, MaxInflatedBytes: maxProxyAnswerBytes}
	_, answer, err := r.Read(nc)
	if errors.Is(err, io.EOF) {
		return errors.New("it closed the connection without an answer; does it allow this server's address")
	}
	if err != nil {
		return err
	}
	a, err := zbx.DecodeAnswer(answer)
	if err == nil && !a.Success {
		err = errors.New("it refuses: " + cmp.Or(a.Info, "it says no reason"))
	}
	return err
}

// connect connects to a proxy as its settings say.
func (p *passiveProxies) connect(ctx context.Context, known *model.Proxy) (net.Conn, model.ConnectionKind, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	settings, secured := p.proxies.keys.HostTLS(known.ID.Peer())
	switch {
	case !secured || settings.Connect == 0 || settings.Connect == model.Unencrypted:
		nc, err := dialProxy(ctx, known.Address)
		return nc, model.Unencrypted, err
	case settings.Connect == model.Certificate:
		if p.certificates == nil || p.certificates.RootCAs == nil {
			return nil, 0, errors.New("this server has no certificate authority to check proxies by: set trapper.tls.ca_file")
		}
		nc, err := dialProxy(ctx, known.Address)
		if err != nil {
			return nil, 0, err
		}
		return shake(ctx, tls.Client(nc, tlspsk.Verifying(p.certificates, settings.Issuer, settings.Subject)), model.Certificate)
	}
	nc, kind, err := p.connectPSK(ctx, known.Address, settings.Identity, settings.Key)
	if err != nil && len(settings.OldKey) > 0 && time.Now().UnixNano() < settings.OldUntil {
		return p.connectPSK(ctx, known.Address, settings.OldIdentity, settings.OldKey)
	}
	return nc, kind, err
}

func (p *passiveProxies) connectPSK(ctx context.Context, address, identity string, key []byte) (net.Conn, model.ConnectionKind, error) {
	nc, err := dialProxy(ctx, address)
	if err != nil {
		return nil, 0, err
	}
	return shake(ctx, tlspsk.Client(nc, &tlspsk.Config{Identity: identity, Key: key}), model.PSK)
}

func dialProxy(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		err = nc.SetDeadline(deadline)
	}
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	return nc, nil
}

// shake makes the handshake of a connection.
func shake(ctx context.Context, nc interface {
	net.Conn
	HandshakeContext(ctx context.Context) error
}, kind model.ConnectionKind,
) (net.Conn, model.ConnectionKind, error) {
	if err := nc.HandshakeContext(ctx); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("%w; do the TLS settings of the proxy fit those at the server", err), nc.Close())
	}
	return nc, kind, nil
}

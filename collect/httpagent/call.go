package httpagent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"time"

	"golang.org/x/net/http/httpguts"

	"tidemark/collect/poller"
	"tidemark/internal/reactor"
	"tidemark/model"
)

const (
	// maxPlainBytes bounds an answer that is not left to Check.
	maxPlainBytes = 256 << 10
	// maxPrepared bounds the requests that are kept; preparedFor is for how long one is believed to be plain or not.
	maxPrepared = 50_000
	preparedFor = time.Hour
)

// asker makes the plain requests of many items together: GET without encryption, without a proxy, to an address or a name whose addresses are known. What turns out
// not to be plain (a redirect to follow, a packed or large answer, any mistake in it) is left to Check, which asks again.
type asker struct {
	c       *Checker
	streams *reactor.Streams

	// The rest is used in functions given to streams only.
	prepared map[*model.Collect]*prepared
	buffered *bufio.Reader
	bytes    bytes.Reader
	// over are the calls that ended in this round.
	over  []*poller.Call
	ended func([]*poller.Call)
}

// prepared is the request of an item.
type prepared struct {
	plain   bool
	to      target
	request []byte
	until   time.Time
}

func newAsker(c *Checker) *asker {
	a := &asker{c: c, prepared: map[*model.Collect]*prepared{}, buffered: bufio.NewReader(nil)}
	a.streams = reactor.NewStreams(reactor.StreamOptions{Round: a.flush, Allow: c.o.Rules.Check})
	return a
}

// Call implements poller.Caller.
func (c *Checker) Call(ctx context.Context, calls []*poller.Call, ended func([]*poller.Call)) {
	a := c.asker
	a.streams.DoAll(len(calls), func() {
		a.ended = ended
		for _, call := range calls {
			a.begin(ctx, call)
		}
	})
}

// flush hands over what ended in a round.
func (a *asker) flush() {
	if over := a.over; len(over) > 0 {
		a.over = nil
		a.ended(over)
	}
}

// asking is a call under way.
type asking struct {
	reactor.Exchange
	a     *asker
	ctx   context.Context //nolint:containedctx // of the call
	call  *poller.Call
	from  *prepared
	frame frame
	// left says that the call is left to Check.
	left bool
}

func (a *asker) begin(ctx context.Context, call *poller.Call) {
	p := a.prepare(call)
	if !p.plain {
		call.ByCheck(ctx, a.c, a.ended)
		return
	}
	to, limit, ok := a.find(p.to)
	if !ok {
		call.ByCheck(ctx, a.c, a.ended)
		return
	}
	k := &asking{a: a, ctx: ctx, call: call, from: p}
	k.frame.follows = call.Tasks[0].Item.Collect.HTTP.FollowRedirects
	k.Exchange = reactor.Exchange{Context: ctx, Deadline: call.Deadline, To: to, Request: p.request, Keep: true, Handler: k}
	if limit > 0 {
		k.ConnectBy = time.Now().Add(limit)
	}
	a.streams.Start(&k.Exchange)
}

// target is where a request goes: to an address, or to the addresses of a name.
type target struct {
	name string
	port uint16
	at   netip.Addr
}

// find returns the address of a target and how long it has to connect, zero for as long as it takes; false when it is not known yet.
func (a *asker) find(t target) (to netip.AddrPort, limit time.Duration, ok bool) {
	at := t.at
	if t.name != "" {
		if at, limit, ok = a.c.names.Find(t.name); !ok {
			return to, 0, false
		}
	}
	return netip.AddrPortFrom(at, t.port), limit, true
}

// prepare returns the request of a call.
func (a *asker) prepare(call *poller.Call) *prepared {
	item := call.Tasks[0].Item.Collect
	if len(call.Tasks) != 1 || item == nil || item.HTTP == nil {
		return &prepared{}
	}
	now := time.Now()
	if p := a.prepared[item]; p != nil && now.Before(p.until) {
		return p
	}
	if len(a.prepared) >= maxPrepared {
		clear(a.prepared)
	}
	p := &prepared{until: now.Add(preparedFor)}
	p.to, p.request, p.plain = a.c.plainRequest(item)
	a.prepared[item] = p
	return p
}

// plainRequest returns the bytes of a request that is plain, as net/http sends them.
func (c *Checker) plainRequest(item *model.Collect) (to target, request []byte, plain bool) {
	q := item.HTTP
	if q.Proxy != "" || q.CertFile != "" || q.Method != http.MethodGet || q.Posts != "" {
		return to, nil, false
	}
	r, err := c.request(context.Background(), q)
	if err != nil || r.URL.Scheme != "http" || r.URL.User != nil {
		return to, nil, false
	}
	switch item.AuthType {
	case "", "NONE":
	case "BASIC":
		r.SetBasicAuth(item.Username, item.Password)
	default:
		return to, nil, false
	}
	for name, values := range r.Header {
		switch name {
		case "Connection", "Transfer-Encoding", "Content-Length", "Upgrade", "Expect", "Range", "Accept-Encoding", "Te", "Trailer", "Keep-Alive", "Proxy-Connection":
			return to, nil, false
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
				return to, nil, false
			}
		}
	}
	if to, plain = targetOf(r.URL); !plain {
		return to, nil, false
	}
	// So net/http does, which unpacks the answer; what comes packed is left to it.
	r.Header.Set("Accept-Encoding", "gzip")
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		return to, nil, false
	}
	return to, b.Bytes(), true
}

// targetOf is where a URL leads; false for names that are not written as the system's resolver takes them.
func targetOf(u *url.URL) (t target, ok bool) {
	port := u.Port()
	if port == "" {
		port = "80"
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return t, false
	}
	t.port = uint16(number)
	if t.at, err = netip.ParseAddr(u.Hostname()); err == nil {
		return t, t.at.Zone() == ""
	}
	t.name = u.Hostname()
	for _, c := range []byte(t.name) {
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '.' && c != '_' {
			return t, false
		}
	}
	return t, t.name != ""
}

// Take implements reactor.Handler.
func (k *asking) Take(got []byte, ended bool) (whole, keep bool) {
	n, state := k.frame.whole(got, ended)
	switch state {
	case partly:
		return false, false
	case odd:
		k.left = true
		k.from.plain = false // The next one will be as odd.
		return true, false
	}
	item := k.call.Tasks[0].Item
	value, ok := k.frame.plainValue(item.Collect.HTTP, got[:n], k.a.c.o.MaxBodyBytes)
	if !ok {
		var err error
		if value, err = k.a.value(item, got[:n]); err != nil {
			k.left = true
			return true, false
		}
	}
	k.call.Results[0] = value
	return true, k.frame.keep && n == len(got)
}

// value reads an answer that is whole with net/http's reader.
func (a *asker) value(item *model.Item, answer []byte) (poller.Result, error) {
	a.bytes.Reset(answer)
	a.buffered.Reset(&a.bytes)
	response, err := http.ReadResponse(a.buffered, nil) // as for GET
	if err != nil {
		return poller.Result{}, err
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return poller.Result{}, err
	}
	if int64(len(body)) > a.c.o.MaxBodyBytes {
		return poller.Result{}, errors.New("too long")
	}
	q := item.Collect.HTTP
	value, err := (&Answer{Status: response.StatusCode, response: response, Header: response.Header, Body: toUTF8(body, response.Header.Get("Content-Type"))}).checked(q)
	if err != nil {
		return poller.Result{Outcome: poller.NotSupported, Text: []byte(err.Error())}, nil
	}
	return poller.Result{Outcome: poller.Value, Text: value}, nil
}

// End implements reactor.Handler.
func (k *asking) End(err error) {
	var dialing *net.OpError
	switch {
	case k.from.to.name != "" && errors.As(err, &dialing) && dialing.Op == "dial":
		// Check looks the name up and tries all its addresses.
		k.a.c.names.Failed(k.from.to.name, k.To.Addr())
		k.call.ByCheck(k.ctx, k.a.c, k.a.ended)
		return
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &dialing) && dialing.Op == "dial":
		k.call.Results[0] = poller.Result{Outcome: poller.NotSupported, Text: []byte(explain(k.ctx, err))}
	case err != nil, k.left:
		k.call.ByCheck(k.ctx, k.a.c, k.a.ended)
		return
	}
	k.a.over = append(k.a.over, k.call)
}

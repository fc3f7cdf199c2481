// Package httpagent makes HTTP agent checks: one request, whose answer is the value.
//
// Connections are kept between checks of the same settings. Places that checks must not reach are refused when a connection is made,
// so also behind a redirect or a name. A failed request makes the item unsupported; there is no interface to be unavailable.
//
// Source of the meaning of the fields: the public Zabbix manual, "HTTP agent".
package httpagent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/Azure/go-ntlmssp"
	"github.com/icholy/digest"

	"tidemark/collect/poller"
	"tidemark/internal/guard"
	"tidemark/internal/reactor"
	"tidemark/model"
)

// Options are the settings of a Checker.
type Options struct {
	// Rules say what must not be reached; nil allows everything.
	Rules *guard.Rules
	// Files holds certificates and keys that items name; nil for none.
	Files fs.FS
	// MaxBodyBytes bounds an answer, unpacked; zero is 32 MiB.
	MaxBodyBytes int64
	// Agent is the value of the header User-Agent; empty is "Tidemark".
	Agent string
}

const (
	// maxRedirects is how many redirects are followed, as Zabbix does.
	maxRedirects = 10
	// maxTransports bounds the sets of connection settings that are kept.
	maxTransports = 1000
	// maxHeaderBytes bounds the headers of an answer.
	maxHeaderBytes = 1 << 20
)

// Checker makes requests. It implements poller.Caller.
type Checker struct {
	o     Options
	names *reactor.Names
	asker *asker

	mu         sync.Mutex
	transports map[transportKey]*http.Transport
}

// New returns a checker.
func New(o Options) *Checker {
	if o.MaxBodyBytes <= 0 {
		o.MaxBodyBytes = 32 << 20
	}
	if o.Agent == "" {
		o.Agent = "Tidemark"
	}
	c := &Checker{o: o, names: reactor.NewNames(), transports: make(map[transportKey]*http.Transport)}
	c.asker = newAsker(c)
	return c
}

// maxPerHost is how many checks of a host are under way at once, and so how many connections to a site are worth keeping.
const maxPerHost = 8

// Kind returns the kind of checks that a poller makes with the checker.
func (c *Checker) Kind() poller.Kind {
	return poller.Kind{Name: "http agent", Types: []model.ItemType{model.HTTPAgent}, Checker: c, MaxInFlight: 2000, MaxPerHost: maxPerHost}
}

// Close ends the connections that are kept.
func (c *Checker) Close() error {
	err := c.asker.streams.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.transports {
		t.CloseIdleConnections()
	}
	clear(c.transports)
	return err
}

// Check implements poller.Checker.
func (c *Checker) Check(ctx context.Context, tasks []*poller.Task, results []poller.Result) {
	for i, t := range tasks {
		value, err := c.check(ctx, t.Item)
		if err != nil {
			results[i] = poller.Result{Outcome: poller.NotSupported, Text: []byte(explain(ctx, err))}
			continue
		}
		results[i] = poller.Result{Outcome: poller.Value, Text: value}
	}
}

func (c *Checker) check(ctx context.Context, item *model.Item) ([]byte, error) {
	if item.Collect == nil || item.Collect.HTTP == nil {
		return nil, errors.New("the item has no URL")
	}
	q := Query{Request: item.Collect.HTTP, AuthType: item.Collect.AuthType, Username: item.Collect.Username, Password: item.Collect.Password}
	a, err := c.Do(ctx, q)
	if err != nil {
		return nil, err
	}
	return a.checked(q.Request)
}

// explain says what to do.
func explain(ctx context.Context, err error) string {
	var refused *guard.Error
	var timeout net.Error
	var asURL *url.Error
	switch {
	case errors.As(err, &refused):
		return refused.Error()
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "the server did not answer in time; a longer timeout can be set for the item"
	case errors.As(err, &asURL):
		// Without the URL, which may hold a password.
		return asURL.Err.Error()
	}
	return err.Error()
}

// Query is a request.
type Query struct {
	Request *model.HTTPRequest
	// AuthType is NONE, BASIC, DIGEST or NTLM; empty is NONE.
	AuthType           string
	Username, Password string
	// Jar keeps cookies; nil for none.
	Jar http.CookieJar
}

// Answer is an answer whose status may be any.
type Answer struct {
	Status int
	// Head is the status line and the headers as they came, with CRLF, Header the headers.
	Head   string
	Header http.Header
	// Body is in UTF-8.
	Body []byte
	// Took is the time from the start to the last byte.
	Took time.Duration
	// ReceivedBytes is the size of the body, unpacked, as it came.
	ReceivedBytes int

	// response is what Head is made of, when it is needed and not there yet.
	response *http.Response
}

// Do makes a request until ctx ends. An error is one of the request or of the connection, not a status.
func (c *Checker) Do(ctx context.Context, q Query) (*Answer, error) {
	transport, err := c.transport(q.Request)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: transport, Jar: q.Jar, CheckRedirect: func(_ *http.Request, via []*http.Request) error {
		switch {
		case !q.Request.FollowRedirects:
			return http.ErrUseLastResponse
		case len(via) > maxRedirects:
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		return nil
	}}
	start := time.Now()
	r, err := c.request(ctx, q.Request)
	if err != nil {
		return nil, err
	}
	switch q.AuthType {
	case "", "NONE":
	case "BASIC":
		r.SetBasicAuth(q.Username, q.Password)
	case "NTLM":
		// The negotiator takes the credentials from there, and never sends them as they are.
		r.SetBasicAuth(q.Username, q.Password)
		own, err := c.newTransport(q.Request, true)
		if err != nil {
			return nil, err
		}
		defer own.CloseIdleConnections()
		client.Transport = &ntlmssp.Negotiator{RoundTripper: own}
	case "KERBEROS":
		return nil, errors.New("authentication of type KERBEROS is not made; expected NONE, BASIC, DIGEST or NTLM")
	case "DIGEST":
		client.Transport = &digest.Transport{Username: q.Username, Password: q.Password, Transport: transport}
	default:
		return nil, fmt.Errorf("authentication of type %s is not known; expected NONE, BASIC, DIGEST or NTLM", q.AuthType)
	}
	response, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, c.o.MaxBodyBytes+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > c.o.MaxBodyBytes {
		return nil, fmt.Errorf("the answer has more than %d bytes", c.o.MaxBodyBytes)
	}
	return &Answer{
		Status: response.StatusCode, Head: head(response), Header: response.Header,
		Body: toUTF8(body, response.Header.Get("Content-Type")), Took: time.Since(start), ReceivedBytes: len(body),
	}, nil
}

// request makes the request of an item.
func (c *Checker) request(ctx context.Context, q *model.HTTPRequest) (*http.Request, error) {
	target, err := address(q)
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if q.Posts != "" {
		body = bytes.NewReader([]byte(q.Posts))
	}
	r, err := http.NewRequestWithContext(ctx, q.Method, target, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", c.o.Agent)
	if body != nil {
		kinds := map[string]string{"JSON": "application/json", "XML": "application/xml"}
		kind := kinds[q.PostType]
		if kind == "" {
			kind = "application/x-www-form-urlencoded"
		}
		r.Header.Set("Content-Type", kind)
	}
	for i, h := range q.Headers {
		name, value := strings.TrimSpace(h.Name), strings.TrimSpace(h.Value)
		if name == "" {
			continue
		}
		if strings.ContainsAny(name+value, "\r\n") {
			return nil, fmt.Errorf("header %s holds a line break", name)
		}
		if http.CanonicalHeaderKey(name) == "Host" {
			r.Host = value
		}
		if first(q.Headers[:i], name) {
			r.Header.Set(name, value)
		} else {
			r.Header.Add(name, value)
		}
	}
	return r, nil
}

// first reports whether none of the headers has a name.
func first(before []model.Pair, name string) bool {
	for _, h := range before {
		if strings.EqualFold(strings.TrimSpace(h.Name), name) {
			return false
		}
	}
	return true
}

// address is the URL with the query fields.
func address(q *model.HTTPRequest) (string, error) {
	text := strings.TrimSpace(q.URL)
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%.200q is no address; expected http:// or https://", q.URL)
	}
	var fields []string
	if u.RawQuery != "" {
		fields = append(fields, u.RawQuery)
	}
	for _, f := range q.Query {
		field := url.QueryEscape(f.Name)
		if f.Value != "" {
			field += "=" + url.QueryEscape(f.Value)
		}
		fields = append(fields, field)
	}
	u.RawQuery = strings.Join(fields, "&")
	return u.String(), nil
}

// readFile reads a certificate or a key; only names inside the folder are.
func (c *Checker) readFile(name string) ([]byte, error) {
	if c.o.Files == nil {
		return nil, errors.New("this server has no folder with certificates for items")
	}
	text, err := fs.ReadFile(c.o.Files, name)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, fmt.Errorf("file %q is not in the server's folder for certificates", name)
	}
	return text, err
}

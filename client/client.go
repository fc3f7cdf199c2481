// Package client calls the REST API of a Tidemark server. It needs nothing but the standard library; the program's own verbs, such as
// "tidemark get", use it too.
//
//	c, err := client.New(client.Options{Address: "monitor.example:8420", Token: os.Getenv("TIDEMARK_TOKEN")})
//	if err != nil {
//		return err
//	}
//	for p, err := range c.AllProblems(ctx, client.ProblemFilter{Open: true, Severities: []string{"high", "disaster"}}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(p.Host, p.Name)
//	}
//
// Every call takes a context, which ends it, and returns an *Error when the server answered that it does not do it. Nothing is tried again by
// itself: Error.Temporary says when that makes sense. A Client is safe for concurrent use.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// DefaultAddress is where a server listens that was not told otherwise.
	DefaultAddress = "127.0.0.1:8420"
	// DefaultTimeout bounds one call with the reading of its answer.
	DefaultTimeout = time.Minute
	// MaxAnswerBytes bounds an answer that is read into memory; a larger one is an error.
	MaxAnswerBytes = 64 << 20
	// MaxPage is how many entries the server puts into one page at most.
	MaxPage = 10_000
)

// Options say which server is called, and as whom. The zero value calls a server on this machine that has no administrator yet.
type Options struct {
	// Address is host:port, or a URL that begins with http:// or https://; empty is DefaultAddress.
	Address string
	// Token says who calls; empty sends none. It is sent to no other host than that of Address.
	Token string
	// HTTP makes the requests, for certificates and proxies of one's own; nil is a client with DefaultTimeout. Redirects, which could take the token to
	// another port or scheme, are followed only when it has a CheckRedirect.
	HTTP *http.Client
}

// Client calls one server. It must be made with New.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// New returns a client. It opens no connection; an address that cannot be one is an error.
func New(o Options) (*Client, error) {
	address := o.Address
	if address == "" {
		address = DefaultAddress
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("the address of the server is %q: expected host:port, or http:// or https:// with it", o.Address)
	}
	if strings.ContainsAny(o.Token, "\r\n") {
		return nil, errors.New("the token has more than one line: expected one line")
	}
	c := &Client{base: strings.TrimSuffix(address, "/"), token: o.Token, http: o.HTTP}
	if c.http == nil {
		c.http = &http.Client{Timeout: DefaultTimeout}
	}
	if c.http.CheckRedirect == nil {
		own := *c.http
		own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		c.http = &own
	}
	return c, nil
}

// Request is one call of any route of /api/openapi.json.
type Request struct {
	// Method is GET when empty.
	Method string
	// Path begins with a slash: "/api/hosts". Parts of it that are names must be escaped (url.PathEscape).
	Path  string
	Query url.Values
	// Body is sent with ContentType, which is application/json when empty; nil sends none.
	Body        []byte
	ContentType string
}

// Open sends a request and returns the answer, whose body the caller must close. Answers that are not 2xx are an *Error.
func (c *Client) Open(ctx context.Context, r Request) (*http.Response, error) {
	address := c.base + r.Path
	if len(r.Query) > 0 {
		address += "?" + r.Query.Encode()
	}
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(r.Body))
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", r.Path, err)
	}
	if r.Body != nil {
		kind := r.ContentType
		if kind == "" {
			kind = "application/json"
		}
		request.Header.Set("Content-Type", kind)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("no answer from the server at %s: %w", c.base, err)
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<20)) // what cannot be read says no more than the status
	return nil, ReadError(answer.StatusCode, text, c.token != "")
}

// Send is Open with the answer read whole.
func (c *Client) Send(ctx context.Context, r Request) ([]byte, error) {
	answer, err := c.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, MaxAnswerBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer of the server at %s: %w", c.base, err)
	}
	if len(text) > MaxAnswerBytes {
		return nil, fmt.Errorf("the answer of the server at %s is larger than %d bytes: ask for less", c.base, MaxAnswerBytes)
	}
	return text, nil
}

// Call sends a request with a body in JSON, none if body is nil, and decodes the answer into into, if that is not nil.
func (c *Client) Call(ctx context.Context, method, path string, body, into any) error {
	r := Request{Method: method, Path: path}
	if body != nil {
		var err error
		if r.Body, err = json.Marshal(body); err != nil {
			return fmt.Errorf("encode the body for %s: %w", path, err)
		}
	}
	return c.decode(ctx, r, into)
}

// Get asks for path with a query and decodes the answer.
func (c *Client) Get(ctx context.Context, path string, query url.Values, into any) error {
	return c.decode(ctx, Request{Path: path, Query: query}, into)
}

func (c *Client) decode(ctx context.Context, r Request, into any) error {
	text, err := c.Send(ctx, r)
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read the answer of the server at %s to %s: %w", c.base, r.Path, err)
	}
	return nil
}

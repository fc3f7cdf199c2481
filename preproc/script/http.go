package script

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/Azure/go-ntlmssp"
	"github.com/dop251/goja"
	"github.com/icholy/digest"

	"tidemark/internal/guard"
)

const (
	// maxClients is how many HttpRequest objects one script may make, as in Zabbix; maxRequests how often they may send.
	maxClients  = 10
	maxRequests = 100
	// maxResponseBytes is the longest answer.
	maxResponseBytes = 10 << 20
	// maxHeaders and maxHeaderBytes bound the headers that a script sets.
	maxHeaders     = 1000
	maxHeaderBytes = 128 << 10
)

// The kinds of authentication that setHttpAuth takes, added up; libcurl's numbers.
const (
	authBasic = 1 << iota
	authDigest
	authNegotiate
	authNTLM
)

// authKinds are the constants of scripts.
var authKinds = map[string]int{
	"HTTPAUTH_NONE": 0, "HTTPAUTH_BASIC": authBasic, "HTTPAUTH_DIGEST": authDigest, "HTTPAUTH_NEGOTIATE": authNegotiate, "HTTPAUTH_NTLM": authNTLM,
}

// httpRequest is the object HttpRequest of scripts.
type httpRequest struct {
	*session
	headers     []string
	headerBytes int
	proxy       *url.URL
	// auth are the kinds of authentication that may be used, a mask of the constants above.
	auth           int64
	user, password string
	response       *http.Response
}

// newHTTP is the constructor of HttpRequest. Its methods have their names of Zabbix 5.4 and later, and those of CurlHttpRequest before.
func (s *session) newHTTP(call goja.ConstructorCall) *goja.Object {
	if s.clients++; s.clients > maxClients {
		s.throw("HttpRequest: more than %d objects in one script", maxClients)
	}
	h := &httpRequest{session: s}
	set := func(f func(goja.FunctionCall) goja.Value, names ...string) {
		for _, name := range names {
			_ = call.This.Set(name, f)
		}
	}
	for _, name := range []string{"get", "post", "put", "delete", "patch", "head", "options", "trace", "connect"} {
		set(func(c goja.FunctionCall) goja.Value {
			return h.send(strings.ToUpper(name), c.Argument(0), c.Argument(1))
		}, name, strings.ToUpper(name[:1])+name[1:])
	}
	set(func(c goja.FunctionCall) goja.Value {
		return h.send(c.Argument(0).String(), c.Argument(1), c.Argument(2))
	}, "customRequest", "CustomRequest")
	set(h.addHeader, "addHeader", "AddHeader")
	set(func(goja.FunctionCall) goja.Value {
		h.headers, h.headerBytes = nil, 0
		return goja.Undefined()
	}, "clearHeader", "ClearHeader")
	set(func(goja.FunctionCall) goja.Value {
		if h.response == nil {
			return s.vm.ToValue(0)
		}
		return s.vm.ToValue(h.response.StatusCode)
	}, "getStatus", "Status")
	set(h.responseHeaders, "getHeaders", "GetHeaders")
	set(h.setProxy, "setProxy", "SetProxy")
	set(h.setAuth, "setHttpAuth", "SetHttpAuth")
	return nil
}

// addHeader takes "name: value"; a second argument is the value of the name in the first, as the manual of older versions has it.
func (h *httpRequest) addHeader(c goja.FunctionCall) goja.Value {
	line := c.Argument(0).String()
	if v := c.Argument(1); !goja.IsUndefined(v) && !goja.IsNull(v) && !strings.Contains(line, ":") {
		line += ": " + v.String()
	}
	if h.headerBytes += len(line); len(h.headers) >= maxHeaders || h.headerBytes > maxHeaderBytes {
		h.throw("HttpRequest: more than %d headers or %d bytes of them", maxHeaders, maxHeaderBytes)
	}
	h.headers = append(h.headers, line)
	return goja.Undefined()
}

func (h *httpRequest) setProxy(c goja.FunctionCall) goja.Value {
	text := c.Argument(0).String()
	if text != "" && !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || text != "" && u.Host == "" {
		h.throw("HttpRequest: %q is no proxy", text)
	}
	h.proxy = u
	if text == "" {
		h.proxy = nil
	}
	return goja.Undefined()
}

// setAuth takes a mask of kinds, a user and a password. Of several kinds digest goes before NTLM, and NTLM before basic; a server that takes only
// basic gets that.
func (h *httpRequest) setAuth(c goja.FunctionCall) goja.Value {
	kinds := c.Argument(0).ToInteger()
	if kinds != 0 && kinds&(authBasic|authDigest|authNTLM) == 0 {
		h.throw("HttpRequest: authentication of kind %d is not known; expected HTTPAUTH_BASIC, HTTPAUTH_DIGEST or HTTPAUTH_NTLM", kinds)
	}
	h.auth, h.user, h.password = kinds, "", ""
	if kinds != 0 {
		h.user, h.password = c.Argument(1).String(), c.Argument(2).String()
	}
	return goja.Undefined()
}

// responseHeaders are those of the last answer: texts, or with true as argument lists of texts.
func (h *httpRequest) responseHeaders(c goja.FunctionCall) goja.Value {
	o := h.vm.NewObject()
	if h.response == nil {
		return o
	}
	lists := c.Argument(0).ToBoolean()
	for name, values := range h.response.Header {
		if lists {
			_ = o.Set(name, values)
		} else {
			_ = o.Set(name, strings.Join(values, ", "))
		}
	}
	return o
}

// send makes a request and returns the body of the answer.
func (h *httpRequest) send(method string, target, data goja.Value) goja.Value {
	if h.requests++; h.requests > maxRequests {
		h.throw("HttpRequest: more than %d requests", maxRequests)
	}
	body, err := h.exchange(method, target.String(), data)
	if err != nil {
		h.throw("HttpRequest: %w", err)
	}
	return h.vm.ToValue(string(body))
}

func (h *httpRequest) exchange(method, target string, data goja.Value) ([]byte, error) {
	ctx, cancel := context.WithDeadline(context.Background(), h.deadline)
	defer cancel()
	var body []byte
	if !goja.IsUndefined(data) && !goja.IsNull(data) {
		text, err := h.text(data)
		if err != nil {
			return nil, err
		}
		body = []byte(text)
	}
	r, err := h.request(ctx, method, target, body)
	if err != nil {
		return nil, err
	}
	response, err := h.client().Do(r)
	if err == nil && response.StatusCode == http.StatusUnauthorized && h.auth&authBasic != 0 && h.auth != authBasic {
		// It offered nothing better, or did not believe it.
		_ = response.Body.Close()
		h.auth = authBasic
		if r, err = h.request(ctx, method, target, body); err != nil {
			return nil, err
		}
		response, err = h.client().Do(r)
	}
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	h.response = response
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes+1))
	if err == nil && len(text) > maxResponseBytes {
		err = fmt.Errorf("the answer has more than %d bytes", maxResponseBytes)
	}
	return text, err
}

func (h *httpRequest) request(ctx context.Context, method, target string, body []byte) (*http.Request, error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, target, reader)
	if err != nil {
		return nil, err
	}
	if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		return nil, fmt.Errorf("%q is no address; expected http:// or https://", target)
	}
	for _, line := range h.headers {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("%q is no header; expected name: value", line)
		}
		if strings.EqualFold(strings.TrimSpace(name), "Host") {
			r.Host = strings.TrimSpace(value)
		}
		r.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if len(h.headers) == 0 && body != nil {
		kind := "text/plain"
		if json.Valid(body) {
			kind = "application/json"
		}
		r.Header.Set("Content-Type", kind)
	}
	if h.auth&(authBasic|authNTLM) != 0 && h.auth&authDigest == 0 { // NTLM takes user and password from there
		r.SetBasicAuth(h.user, h.password)
	}
	return r, nil
}

// client makes a client for one request. Every connection is judged after its name was looked up, also to a proxy and behind redirects.
func (h *httpRequest) client() *http.Client {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Control: h.control}).DialContext}
	if h.proxy != nil {
		transport.Proxy = http.ProxyURL(h.proxy)
	}
	switch {
	case h.auth&authDigest == 0 && h.auth&authNTLM != 0:
		transport.DisableKeepAlives = false // its three messages belong to one connection
		transport.IdleConnTimeout = time.Second
		return &http.Client{Transport: &ntlmssp.Negotiator{RoundTripper: transport}}
	case h.auth&authDigest != 0:
		return &http.Client{Transport: &digest.Transport{Username: h.user, Password: h.password, Transport: transport}}
	}
	return &http.Client{Transport: transport}
}

// control refuses addresses that scripts must not reach. Webhooks are sent to public ones, or to those that their media type allows.
func (s *session) control(network, address string, c syscall.RawConn) error {
	if err := s.rules.Control(network, address, c); err != nil || !s.options.Webhook {
		return err
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	ip := at.Addr().Unmap().WithZone("")
	if slices.ContainsFunc(s.options.Allow, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return nil
	}
	if p, private := guard.Private(ip); private {
		return fmt.Errorf("%s is in %s, which is not public; to permit it, add it to the media type's allow", ip, p)
	}
	return nil
}

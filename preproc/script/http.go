package script

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/dop251/goja"
)

const (
	// maxRequests is how many requests one script may make.
	maxRequests = 10
	// maxResponseBytes is the longest answer.
	maxResponseBytes = 10 << 20
	// maxHeaders bounds the headers that a script sets.
	maxHeaders = 128
)

// httpRequest is the object HttpRequest of scripts.
type httpRequest struct {
	*session
	headers  []string
	proxy    *url.URL
	user     string
	password string
	auth     bool
	response *http.Response
}

// newHTTP is the constructor of HttpRequest.
func (s *session) newHTTP(call goja.ConstructorCall) *goja.Object {
	h := &httpRequest{session: s}
	set := func(name string, f func(goja.FunctionCall) goja.Value) { _ = call.This.Set(name, f) }
	for name, method := range map[string]string{
		"get": "GET", "post": "POST", "put": "PUT", "delete": "DELETE", "patch": "PATCH", "head": "HEAD", "options": "OPTIONS", "trace": "TRACE",
		"connect": "CONNECT", "Get": "GET", "Post": "POST", "Put": "PUT", "Delete": "DELETE",
	} {
		set(name, func(c goja.FunctionCall) goja.Value { return h.send(method, c.Argument(0), c.Argument(1)) })
	}
	set("customRequest", func(c goja.FunctionCall) goja.Value {
		return h.send(c.Argument(0).String(), c.Argument(1), c.Argument(2))
	})
	add := func(c goja.FunctionCall) goja.Value {
		if len(h.headers) >= maxHeaders {
			h.throw("HttpRequest: more than %d headers", maxHeaders)
		}
		h.headers = append(h.headers, c.Argument(0).String())
		return goja.Undefined()
	}
	drop := func(goja.FunctionCall) goja.Value { h.headers = nil; return goja.Undefined() }
	status := func(goja.FunctionCall) goja.Value {
		if h.response == nil {
			return s.vm.ToValue(0)
		}
		return s.vm.ToValue(h.response.StatusCode)
	}
	set("addHeader", add)
	set("AddHeader", add)
	set("clearHeader", drop)
	set("ClearHeader", drop)
	set("getStatus", status)
	set("Status", status)
	set("getHeaders", h.responseHeaders)
	set("setProxy", h.setProxy)
	set("SetProxy", h.setProxy)
	set("setHttpAuth", h.setAuth)
	return nil
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

// setAuth takes the kind, as a number, a user and a password; only basic authentication is known (1), 0 switches it off.
func (h *httpRequest) setAuth(c goja.FunctionCall) goja.Value {
	switch kind := c.Argument(0).ToInteger(); kind {
	case 0:
		h.auth = false
	case 1:
		h.auth, h.user, h.password = true, c.Argument(1).String(), c.Argument(2).String()
	default:
		h.throw("HttpRequest: authentication of kind %d is not known; expected 1 for basic", kind)
	}
	return goja.Undefined()
}

func (h *httpRequest) responseHeaders(goja.FunctionCall) goja.Value {
	o := h.vm.NewObject()
	if h.response != nil {
		for name, values := range h.response.Header {
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
	var body io.Reader
	if !goja.IsUndefined(data) && !goja.IsNull(data) {
		text, err := h.text(data)
		if err != nil {
			return nil, err
		}
		body = strings.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, target, body)
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
	if h.auth {
		r.SetBasicAuth(h.user, h.password)
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Control: h.rules.Control}).DialContext}
	if h.proxy != nil {
		transport.Proxy = http.ProxyURL(h.proxy)
	}
	client := &http.Client{Transport: transport}
	response, err := client.Do(r)
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

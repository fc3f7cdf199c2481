package api

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Guard refuses requests that a foreign page made a browser send.
//
// The Host header must be one of this server's names, so that a foreign name that was pointed at this address (DNS
// rebinding) leads nowhere; and a request with an Origin must come from the page of that same host.
type Guard struct {
	// Hosts are names and addresses, without port, besides the loopback ones that are always allowed.
	Hosts []string
	// AnyHost, if not nil, says that every Host is let in; for servers whose routes all need a session or a token.
	AnyHost func() bool
}

// Check returns nil or the *Error to answer with.
func (g Guard) Check(r *http.Request) error {
	if (g.AnyHost == nil || !g.AnyHost()) && !g.allowed(hostname(r.Host)) {
		return &Error{http.StatusForbidden, "foreign_host", fmt.Sprintf(
			"this server answers on loopback only, and the request was for the host %.200q; open http://127.0.0.1 or http://localhost with its port", r.Host)}
	}
	for _, origin := range r.Header.Values("Origin") {
		if !sameOrigin(origin, r) {
			return &Error{http.StatusForbidden, "foreign_origin", fmt.Sprintf(
				"the request came from a page of %.200q, expected one of this server (%.200q)", origin, r.Host)}
		}
	}
	// Browsers do not send Origin with every request, but they do say when another site's page made it. Following a
	// link from there is no danger, embedding is.
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		return &Error{http.StatusForbidden, "foreign_origin", "the request was made by a page of another site"}
	}
	return nil
}

// hostname cuts the port off a Host header. What is no host gives "".
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		if !ok {
			return ""
		}
		return inner
	}
	if strings.Contains(host, ":") {
		return ""
	}
	return host
}

func (g Guard) allowed(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	if address, err := netip.ParseAddr(name); err == nil && address.Unmap().IsLoopback() && address.Zone() == "" {
		return true
	}
	return name != "" && slices.ContainsFunc(g.Hosts, func(h string) bool { return strings.EqualFold(h, name) })
}

// sameOrigin reports whether an Origin header names the host that the request is for.
func sameOrigin(origin string, r *http.Request) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Path != "" {
		return false // "null" comes here: files, sandboxes
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return u.Scheme == scheme && strings.EqualFold(withPort(u.Host, scheme), withPort(r.Host, scheme))
}

// withPort adds the scheme's own port where none is written.
func withPort(host, scheme string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	if scheme == "https" {
		return host + ":443"
	}
	return host + ":80"
}

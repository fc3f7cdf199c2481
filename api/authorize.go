package api

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"tidemark/access"
	"tidemark/model"
)

// Role returns the least role that has a permission. What is no permission nobody has.
func (p Permission) Role() model.Role {
	switch p {
	case Public:
		return model.NoRole
	case View:
		return model.Viewer
	case Operate:
		return model.Operator
	case Edit:
		return model.Editor
	case Administer:
		return model.Administrator
	}
	return model.Administrator + 1
}

// SessionCookie is the name of the cookie that holds a session.
const SessionCookie = "tidemark_session"

// Authorizer lets requests in by session, token, or because they come from loopback before there is an administrator.
type Authorizer struct{ Control *access.Control }

// Credentials returns what a request was sent with. A token comes as a bearer token, or as the password of basic authentication, which
// Grafana and others know to send; the name does not matter then.
func Credentials(r *http.Request) access.Credentials {
	sent := access.Credentials{Loopback: fromLoopback(r)}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		sent.Token = token
	} else if _, password, ok := r.BasicAuth(); ok {
		sent.Token = password
	}
	if c, err := r.Cookie(SessionCookie); err == nil {
		sent.Session = c.Value
	}
	return sent
}

// fromLoopback reports whether a request comes from this machine and was not passed on by a proxy on it.
func fromLoopback(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// Authorize finds who sent a request and whether they may. The context that it returns carries them; for a streaming route it ends when
// they are signed out or may do other things than before.
func (a Authorizer) Authorize(r *http.Request, route Route) (context.Context, error) {
	sent := Credentials(r)
	who, err := a.Control.Identify(sent)
	if err != nil {
		message := "sign in on the page, or send a token as \"Authorization: Bearer TOKEN\" or as the password of basic authentication"
		if !access.Whole(sent.Token) {
			message = "the token is not whole: it was not copied to its end"
		} else if sent.Token != "" {
			message = "the token is not known, was revoked, or is over"
		}
		return nil, &Error{http.StatusUnauthorized, "unauthorized", message}
	}
	if err := checkForgery(r, who); err != nil {
		return nil, err
	}
	if err := allow(who, route); err != nil {
		return nil, err
	}
	ctx := access.With(r.Context(), who)
	if route.Streaming {
		ctx = a.Control.Watch(ctx, who)
	}
	return ctx, nil
}

// allow compares what a route needs with what somebody may.
func allow(who *access.Identity, route Route) error {
	if need := route.Permission.Role(); who.MostRole() < need {
		return &Error{http.StatusForbidden, "denied", fmt.Sprintf("this needs the role %s, and %s has %s", need, who.Name, who.MostRole())}
	}
	if !route.PerHost && !who.SeesAllHosts() {
		return &Error{http.StatusForbidden, "denied", fmt.Sprintf("this shows or changes things of all hosts, and %s may see only some", who.Name)}
	}
	return nil
}

// checkForgery refuses a change that is sent with a cookie and not by this server's own page. The cookie is SameSite=Strict, so this is
// the second lock: browsers say with every change where it comes from.
func checkForgery(r *http.Request, who *access.Identity) error {
	if safe(r.Method) || who.Via != access.ViaSession {
		return nil
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if site == "same-origin" || site == "" && r.Header.Get("Origin") != "" { // the guard has compared Origin
		return nil
	}
	return &Error{http.StatusForbidden, "foreign_origin", "a change with a session's cookie must come from the page of this server; programs send a token"}
}

func safe(method string) bool { return method == http.MethodGet || method == http.MethodHead }

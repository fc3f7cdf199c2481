package trapper

import (
	"context"
	"hash/maphash"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tidemark/model"
	"tidemark/wire/zbx"
)

// extensionVersion is the version of our extension of the protocol.
const extensionVersion = 1

// checkTimeout is what agents from 7.0 are told; it is Zabbix's default for agent items.
const checkTimeout = "3s"

// activeChecks answers an agent that asks for its list.
func (s *Server) activeChecks(ctx context.Context, c *conn, w *worker, r *zbx.Request) {
	if len(r.Session) != 0 && len(r.Session) != sessionTokenBytes {
		s.refuse(c, badSession, "a session token has the wrong length", "host", clip(r.Host), "length", len(r.Session))
		w.answer = zbx.AppendFailed(w.answer, "invalid session token: expected 32 characters")
		return
	}
	host, ok := s.agentHost(ctx, c, r)
	if ok && !s.allows(host.ID, c) {
		w.answer = zbx.AppendFailed(w.answer, s.kindRefused(c, r.Host))
		return
	}
	if !ok {
		w.answer = zbx.AppendFailed(w.answer, "host ["+clip(r.Host)+"] not found")
		return
	}
	if s.proxied(c, w, host, r.Host) {
		return
	}
	if !host.Enabled {
		s.refuse(c, unknownAgent, "an agent of a host that is not monitored asks for its list", "host", clip(r.Host))
		w.answer = zbx.AppendFailed(w.answer, "host \""+clip(r.Host)+"\" not monitored")
		return
	}
	now := s.o.Now()
	s.seen(host, now)
	items, revision := s.o.Items.ActiveChecks(host.ID)
	withSession := len(r.Session) != 0
	a := zbx.ChecksAnswer{Form: zbx.FormOf(r.Version), Revision: revision, WithRevision: withSession, UploadDisabled: s.capped()}
	if r.Tidemark != 0 && s.o.Declarer != nil {
		a.Tidemark = extensionVersion
	}
	if withSession && revision != 0 && r.ConfigRevision == revision && s.sessions.revision(host.ID, r.Session) == revision {
		w.answer = a.Unchanged(w.answer)
		return
	}
	w.answer = a.Begin(w.answer)
	for _, item := range items {
		check := s.check(item)
		w.answer = a.Add(w.answer, &check)
	}
	w.answer = a.End(w.answer, s.regexps(items)...)
	if withSession {
		// Remembered before the answer is sent, because the next request may come at once. Should the answer get lost, the agent still names
		// its older revision and gets the list again.
		s.sessions.setRevision(host.ID, r.Session, revision, now)
	}
}

// namesRegexp finds the global regular expression that the key of a log item names in a parameter.
var namesRegexp = regexp.MustCompile(`^(?:log|logrt|eventlog)(?:\.count)?\[.*?,\s*"?@([^",\]]+)`)

// regexps returns the global regular expressions that items name, each once.
func (s *Server) regexps(items []*model.Item) []model.GlobalRegexp {
	if s.o.Regexp == nil {
		return nil
	}
	var list []model.GlobalRegexp
	for _, item := range items {
		m := namesRegexp.FindStringSubmatch(item.CheckKey())
		if m == nil || slices.ContainsFunc(list, func(g model.GlobalRegexp) bool { return g.Name == m[1] }) {
			continue
		}
		if g, ok := s.o.Regexp(m[1]); ok {
			list = append(list, g)
		}
	}
	return list
}

func (s *Server) check(item *model.Item) zbx.Check {
	p := s.logs.get(item.ID)
	seconds := max(1, int64((item.Interval+time.Second-1)/time.Second))
	delay := item.Delay
	if delay == "" {
		delay = strconv.FormatInt(seconds, 10) + "s"
	}
	return zbx.Check{
		Key: item.CheckKey(), ItemID: uint64(item.ID), Delay: delay, DelaySeconds: seconds,
		LastLogSize: p.size, MTime: p.mtime, Timeout: checkTimeout,
	}
}

// agentHost finds the host of an agent and lets an unknown one, or one that says something new of itself, register.
func (s *Server) agentHost(ctx context.Context, c *conn, r *zbx.Request) (HostRef, bool) {
	host, known := s.o.Items.Host(r.Host)
	if known && !s.allows(host.ID, c) {
		return host, true // to be refused
	}
	if known && (string(r.Metadata) == host.Metadata || s.offered.has(host.ID, r.Metadata)) {
		return host, true
	}
	if s.o.Registrar == nil || len(r.Host) == 0 {
		if !known {
			s.refuse(c, unknownAgent, "an unknown agent asks for its list, and auto-registration is off; import a host of that name, or start the server with --autoregistration", "host", clip(r.Host))
		}
		return host, known
	}
	if !known && s.o.Access != nil && !s.o.Access.AllowsNew(c.peer) {
		s.kindRefused(c, r.Host)
		return host, false
	}
	accepted, err := s.o.Registrar.Register(ctx, hello(c, r))
	switch {
	case err != nil:
		s.refuse(c, unknownAgent, "an agent could not be registered", "host", clip(r.Host), "error", err)
	case accepted:
		host, known = s.o.Items.Host(r.Host)
	case !known:
		s.refuse(c, unknownAgent, "an unknown agent was not registered", "host", clip(r.Host))
	}
	if known && err == nil {
		s.offered.add(host.ID, r.Metadata)
	}
	return host, known
}

// offers are the metadata with which known hosts were offered to the registrar, so that one whose metadata it keeps in
// another form, or does not want, is offered once and not at each request. There is at most one per host.
type offers struct {
	mu     sync.Mutex
	byHost map[model.HostID]uint64
	seed   maphash.Seed
}

func (o *offers) has(host model.HostID, metadata []byte) bool {
	if len(metadata) == 0 {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	sum, ok := o.byHost[host]
	return ok && sum == maphash.Bytes(o.seed, metadata)
}

func (o *offers) add(host model.HostID, metadata []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byHost == nil {
		o.byHost, o.seed = make(map[model.HostID]uint64), maphash.MakeSeed()
	}
	o.byHost[host] = maphash.Bytes(o.seed, metadata)
}

func hello(c *conn, r *zbx.Request) AgentHello {
	peer, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		peer = c.RemoteAddr().String()
	}
	return AgentHello{
		Host: string(r.Host), Metadata: string(r.Metadata), Interface: string(r.Interface), IP: string(r.IP),
		Port: int(min(r.Port, 1<<16-1)), Version: string(r.Version), Variant: int(min(r.Variant, 255)), Tidemark: r.Tidemark != 0, Peer: peer, Kind: c.peer.Kind,
	}
}

// textChecks answers the text request for active checks. Keys with line breaks would break the answer's lines; they
// are left out.
func (s *Server) textChecks(c *conn, w *worker, t zbx.TextRequest) {
	host, ok := s.o.Items.Host(t.Host)
	switch {
	case !ok || !host.Enabled || host.Proxy != 0:
		s.refuse(c, unknownAgent, "an unknown agent asks for its list", "host", clip(t.Host))
	case !s.allows(host.ID, c):
		s.kindRefused(c, t.Host)
	default:
		s.seen(host, s.o.Now())
		items, _ := s.o.Items.ActiveChecks(host.ID)
		for _, item := range items {
			if check := s.check(item); !strings.ContainsAny(check.Key, "\r\n") {
				w.answer = zbx.AppendTextCheck(w.answer, &check)
			}
		}
	}
	w.answer = append(w.answer, zbx.TextChecksEnd...)
}

package trapper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"tidemark/model"
	"tidemark/wire/zbx"
)

// Proxies knows the proxies that send on what others gave them. Its methods are called from many goroutines.
type Proxies interface {
	// Proxy finds a proxy by its name.
	Proxy(name []byte) (model.ProxyID, bool)
	// Passive reports whether the server connects to a proxy, and not the proxy to the server.
	Passive(id model.ProxyID) bool
	// Config appends the configuration for a proxy that says this version: what it is to ask of its hosts. positions says how far the log
	// of an item was read. The error is told to the proxy.
	Config(dst []byte, id model.ProxyID, version string, positions func(model.ItemID) (size, mtime uint64)) ([]byte, error)
	// Takes reports whether there is room for more values from a proxy now; brings says that it brings some with this request.
	Takes(id model.ProxyID, brings bool) bool
	// Began hears that a request of a proxy arrived, before anything of it is stored.
	Began(id model.ProxyID, contact ProxyContact)
	// Stored hears that values of a proxy are stored; backlog says that it has more of them that it did not send yet.
	Stored(id model.ProxyID, at int64, values int, backlog bool)
	// Available takes whether interfaces answer the proxy, and returns when that is durable: a proxy tells a change once.
	Available(ctx context.Context, id model.ProxyID, states []ProxyInterface) error
	// Discovered takes what a proxy found by network discovery. An error says that it could not be stored; the proxy brings it again.
	Discovered(ctx context.Context, id model.ProxyID, list []zbx.ProxyFind) error
	// Tasks are those that a proxy is to be given now; they count as given. Untold takes back those that did not reach it.
	Tasks(id model.ProxyID) []zbx.Task
	Untold(id model.ProxyID, list []zbx.Task)
	// Results takes what became of tasks.
	Results(id model.ProxyID, list []zbx.Task)
	// Register takes an agent in that asked a proxy for its list.
	Register(ctx context.Context, id model.ProxyID, hello AgentHello) error
}

// ProxyContact is what a request shows of a proxy.
type ProxyContact struct {
	// At is when it came, Unix nanoseconds.
	At int64
	// Version is as the proxy says it.
	Version string
	// Peer is where it came from.
	Peer string
	// Session is the token of the proxy's process, which comes with values; empty for none.
	Session string
	// Data is set for a request with values or other news, not for heartbeats and requests for the configuration.
	Data bool
	// AheadNanos is by how much the proxy's clock is ahead; zero when it does not say.
	AheadNanos int64
}

// ProxyInterface says whether an interface of a host answers a proxy.
type ProxyInterface struct {
	ID uint64 `json:"interfaceid"`
	// Available is 0 unknown, 1 yes, 2 no, with the reason.
	Available int    `json:"available"`
	Error     string `json:"error"`
}

// registration is an agent that asked a proxy for its list.
type registration struct {
	Clock    int64       `json:"clock"`
	Host     string      `json:"host"`
	IP       string      `json:"ip"`
	DNS      string      `json:"dns"`
	Port     json.Number `json:"port"`
	Metadata string      `json:"host_metadata"`
	Accepted int         `json:"tls_accepted"`
}

// maxProxyRows bounds the interfaces, the registrations and the finds of one request.
const maxProxyRows = 100_000

// maxResults bounds the results of tasks in one request.
const maxResults = 10_000

// proxy serves the requests of proxies.
func (s *Server) proxy(ctx context.Context, c *conn, w *worker, r *zbx.Request) {
	if s.o.Proxies == nil {
		w.answer = zbx.AppendFailed(w.answer, "unsupported request '"+clip(r.Name)+"'")
		return
	}
	id, ok := s.o.Proxies.Proxy(r.Host)
	if !ok {
		s.refuse(c, unknownProxy, "a proxy that is not known; make it known with 'tidemark proxies add'", "proxy", clip(r.Host))
		w.answer = zbx.AppendFailed(w.answer, "proxy \""+clip(r.Host)+"\" not found")
		return
	}
	if s.o.Proxies.Passive(id) {
		s.refuse(c, unknownProxy, "a proxy that the server asks (passive) connects to the server", "proxy", clip(r.Host))
		w.answer = zbx.AppendFailed(w.answer, "proxy \""+clip(r.Host)+"\" is a passive one: it is asked by the server and must not connect")
		return
	}
	if !s.allows(id.Peer(), c) {
		s.refuse(c, kindNotAllowed, "a proxy does not accept this connection", "proxy", clip(r.Host), "connection", c.peer.Kind.String(), "identity", c.peer.Identity)
		w.answer = zbx.AppendFailed(w.answer, "connection of type \""+c.peer.Kind.String()+"\" is not allowed for proxy \""+clip(r.Host)+"\"")
		return
	}
	s.o.Proxies.Began(id, s.contact(c, r))
	switch string(r.Name) {
	case zbx.ProxyHeartbeat:
		w.answer = zbx.AppendSuccess(w.answer, "")
	case zbx.ProxyConfig:
		s.proxyConfig(c, w, r, id)
	default:
		s.proxyData(ctx, c, w, r, id)
	}
}

func (s *Server) proxyConfig(c *conn, w *worker, r *zbx.Request, id model.ProxyID) {
	answer, err := s.o.Proxies.Config(w.answer, id, string(r.Version), s.LogPosition)
	if err != nil {
		s.refuse(c, unknownProxy, "a proxy cannot be given its configuration", "proxy", clip(r.Host), "error", err)
		w.answer = zbx.AppendFailed(w.answer[:0], err.Error())
		return
	}
	w.answer, w.squeeze = answer, true
}

// proxyData takes what a proxy has collected. Everything of a request is stored before the answer, or nothing of it is acknowledged.
func (s *Server) proxyData(ctx context.Context, c *conn, w *worker, r *zbx.Request, id model.ProxyID) {
	ctx, cancel := context.WithTimeout(ctx, s.o.StoreTimeout)
	defer cancel()
	if len(r.Session) != 0 && len(r.Session) != sessionTokenBytes {
		s.refuse(c, badSession, "a session token has the wrong length", "proxy", clip(r.Host), "length", len(r.Session))
		w.answer = zbx.AppendFailed(w.answer, "invalid session token: expected 32 characters")
		return
	}
	brings := len(r.History) > len("[]")
	takes := s.o.Proxies.Takes(id, brings)
	if !takes && brings {
		// Failure makes the proxy keep the values; the rest stops newer ones from asking again at once.
		s.refuse(c, proxyWaits, "the history cache is full; proxies keep their values for a while", "proxy", clip(r.Host))
		w.answer = zbx.AppendProxyAnswer(w.answer, "failed", "the history cache of the server is full; values are kept by the proxy", false)
		return
	}
	if err := s.proxyNews(ctx, c, r, id); err != nil {
		s.refuse(c, notStored, "what a proxy reports is not taken; it will send it again", "proxy", clip(r.Host), "error", err)
		w.answer = zbx.AppendProxyAnswer(w.answer, "failed", err.Error(), takes)
		return
	}
	in := w.ingest.begin(s, c, true)
	defer in.end()
	in.token, in.proxy = r.Session, id
	err := in.rows(ctx, r.History)
	if err == nil {
		err = in.store(ctx)
	}
	if err != nil {
		s.refuse(c, notStored, "values were not stored; the proxy will send them again", "proxy", clip(r.Host), "error", err)
		w.answer = zbx.AppendProxyAnswer(w.answer, "failed", "values were not stored", takes)
		return
	}
	s.o.Proxies.Stored(id, s.o.Now(), int(in.counts.Processed), r.More != 0)
	w.answer = zbx.AppendProxyAnswer(w.answer, "success", "", takes)
	if list := s.o.Proxies.Tasks(id); len(list) > 0 {
		w.answer = zbx.AppendTasks(w.answer, list)
		w.unsent = func() { s.o.Proxies.Untold(id, list) }
	}
}

// proxyNews takes what a proxy reports besides values.
func (s *Server) proxyNews(ctx context.Context, c *conn, r *zbx.Request, id model.ProxyID) error {
	var states []ProxyInterface
	if err := proxyList(r.Availability, &states); err != nil {
		return errors.Join(errors.New("interface availability"), err)
	}
	if len(states) > 0 {
		if err := s.o.Proxies.Available(ctx, id, states); err != nil {
			return errors.Join(errors.New("interface availability could not be stored"), err)
		}
	}
	finds, err := zbx.DecodeFinds(r.Finds, maxProxyRows)
	if err != nil {
		return errors.Join(errors.New("discovery data"), err)
	}
	if len(finds) > 0 {
		if err := s.o.Proxies.Discovered(ctx, id, finds); err != nil {
			return errors.Join(errors.New("what network discovery found could not be stored"), err)
		}
	}
	results, err := zbx.DecodeTasks(r.Tasks, maxResults)
	if err != nil {
		return errors.Join(errors.New("tasks"), err)
	}
	if len(results) > 0 {
		s.o.Proxies.Results(id, results)
	}
	var agents []registration
	if err := proxyList(r.Registrations, &agents); err != nil {
		return errors.Join(errors.New("auto registration"), err)
	}
	for i := range agents {
		a := &agents[i]
		if a.Host == "" || len(a.Host) > 128 {
			s.refuse(c, unknownAgent, "a proxy names an agent without a proper name", "proxy", clip(r.Host), "host", clip([]byte(a.Host)))
			continue
		}
		port, _ := strconv.ParseUint(a.Port.String(), 10, 16)
		h := AgentHello{Host: a.Host, Metadata: a.Metadata, IP: a.IP, Interface: a.DNS, Port: int(port), Peer: a.IP}
		if err := s.o.Proxies.Register(ctx, id, h); err != nil {
			// One agent with a bad name must not keep back everything that comes behind it.
			s.refuse(c, unknownAgent, "an agent behind a proxy could not be registered", "host", a.Host, "error", err)
		}
	}
	return nil
}

func proxyList[T any](text []byte, into *[]T) error {
	if len(text) == 0 {
		return nil
	}
	// Entries take many times the room of the shortest ones in the text.
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		if len(*into) == maxProxyRows {
			return errors.New("more than " + strconv.Itoa(maxProxyRows) + " entries")
		}
		var row T
		if err := d.Decode(&row); err != nil {
			return err
		}
		*into = append(*into, row)
	}
	return nil
}

// fromProxy takes one value of a proxy.
func (in *ingest) fromProxy(ctx context.Context, row *zbx.Row) error {
	// Sessions of a proxy are its own, not those of the hosts.
	in.host = HostRef{ID: in.proxy.Peer(), Enabled: true}
	repeated, err := in.repeated(ctx, row.ID)
	if err != nil {
		return err
	}
	if repeated {
		in.fail(duplicate)
		return nil
	}
	if row.Has&zbx.HasItemID == 0 {
		in.failRow(unknownItem, row)
		return nil
	}
	item, ok := in.s.o.Items.ItemByID(model.ItemID(row.ItemID))
	switch {
	case !ok:
		in.failRow(unknownItem, row)
		return nil
	case item.Proxy != in.proxy:
		// Its host belongs to another proxy by now, or the server makes the values itself.
		in.failRow(otherProxy, row)
		return nil
	case !item.Enabled:
		in.failRow(disabled, row)
		return nil
	}
	if in.seenHost != item.HostID {
		in.seenHost = item.HostID
		in.s.seen(HostRef{ID: item.HostID, Enabled: true}, in.arrived)
	}
	return in.value(ctx, row, item)
}

// proxied reports whether the agent of a host must speak to a proxy, and answers it then.
func (s *Server) proxied(c *conn, w *worker, host HostRef, name []byte) bool {
	if host.Proxy == 0 {
		return false
	}
	s.refuse(c, otherProxy, "an agent asks the server, but its host is assigned to a proxy", "host", clip(name))
	w.answer = zbx.AppendFailed(w.answer, "host \""+clip(name)+"\" is monitored by a proxy")
	return true
}

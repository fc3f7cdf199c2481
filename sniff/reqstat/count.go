package reqstat

import (
	"tidemark/sniff/flow"
	"tidemark/sniff/pair"
	"tidemark/sniff/shape"
	"tidemark/wire/sketch"
)

// of returns the statistics of a shape.
func (i *Instance) of(s *shape.Shape) *ShapeStatistics {
	if s.Forgotten() {
		s = i.other
	}
	st, _ := s.Counted.(*ShapeStatistics)
	if st == nil || st.instance != i {
		if st = i.Shapes[s]; st == nil {
			st = &ShapeStatistics{Shape: s, instance: i, at: i.drains}
			i.Shapes[s] = st
		}
		s.Counted = st
	}
	if !st.touched {
		st.touched = true
		i.touched = append(i.touched, st)
	}
	return st
}

// lookup returns the entry of a bounded table; when it is full, that of other.
func lookup[K comparable](i *Instance, m map[K]*entry, key, other K, limit int) *entry {
	if e := m[key]; e != nil {
		return e
	}
	if len(m) >= limit {
		key = other
		if e := m[key]; e != nil {
			return e
		}
	}
	e := &entry{instance: i}
	m[key] = e
	return e
}

// command returns the entry of a request's command. A request with one statement mostly works on what its shape names, and then the
// shape knows the entry.
func (i *Instance) command(r *pair.Request) *entry {
	var st *ShapeStatistics
	if len(r.Statements) == 1 {
		if s := r.Statements[0].Shape; s.Command == r.Command && s.Collection == r.Collection && s.Database == r.Database {
			st = i.of(s)
			if st.Shape == s && st.command != nil && !st.command.dead {
				return st.command
			}
		}
	}
	e := lookup(i, i.commands, Command{r.Database, r.Collection, r.Command}, Command{Name: OtherName}, maxCommands)
	if st != nil {
		st.command = e
	}
	return e
}

// client returns the entry of a request's client, which its peer knows.
func (i *Instance) client(r *pair.Request) *entry {
	e, _ := r.Peer.Value.(*entry)
	if e == nil || e.dead || e.instance != i {
		e = lookup(i, i.clients, Client{r.Peer.Application, flow.Endpoint{Address: r.Peer.Client.Address}}, Client{Application: OtherName}, maxClients)
		if e.latency == nil && i.sketched < maxClientLatencies {
			e.latency = new(sketch.Sketch)
			i.sketched++
		}
		r.Peer.Value = e
	}
	return e
}

// Request implements pair.Sink.
func (t *Table) Request(r *pair.Request) {
	i := t.instance(&r.Peer.Server)
	if i == nil {
		t.Overflow++
		return
	}
	switch {
	case r.Monitoring:
		i.Monitoring.request(r, uint64(r.Bytes))
		return
	case r.Cluster:
		i.Cluster.request(r, uint64(r.Bytes))
		return
	case r.Waits:
		i.Waiting.request(r, uint64(r.Bytes))
	}
	i.command(r).request(r, uint64(r.Bytes))
	i.client(r).request(r, uint64(r.Bytes))
	i.Total.request(r, uint64(r.Bytes))
	total := count(r.Statements)
	for k := range r.Statements {
		s := &r.Statements[k]
		st := i.of(s.Shape)
		st.Requests += uint64(s.Count)
		st.RequestBytes += share(uint64(r.Bytes), s.Count, total)
		if r.Unacknowledged {
			st.Unacknowledged += uint64(s.Count)
		}
		if r.Command == "getMore" {
			st.FurtherRequests++
		}
	}
}

func (s *Statistics) request(r *pair.Request, bytes uint64) {
	s.Requests++
	s.RequestBytes += bytes
	if r.Unacknowledged {
		s.Unacknowledged++
	}
}

// Reply implements pair.Sink.
func (t *Table) Reply(r *pair.Request, reply *pair.Reply) {
	i := t.instance(&r.Peer.Server)
	if i == nil {
		return
	}
	latency := uint64(reply.LatencyNanos)
	if r.Waits || reply.Further {
		latency = 0
	}
	switch {
	case r.Monitoring:
		i.Monitoring.reply(reply, 0)
		return
	case r.Cluster:
		i.Cluster.reply(reply, latency)
		return
	case r.Waits:
		i.Waiting.reply(reply, uint64(reply.LatencyNanos))
	}
	i.command(r).reply(reply, latency)
	client := i.client(r)
	client.reply(reply, latency)
	i.Total.reply(reply, latency)
	timed := !r.Waits && !reply.Further
	if timed {
		i.Latency.Add(reply.LatencyNanos)
		if client.latency != nil {
			client.latency.Add(reply.LatencyNanos)
		}
	}
	total := count(r.Statements)
	for _, s := range r.Statements {
		i.of(s.Shape).reply(r, reply, s.Count, total, timed)
	}
}

func (s *Statistics) reply(reply *pair.Reply, latency uint64) {
	if !reply.Further {
		s.Replies++
	}
	s.ReplyBytes += uint64(reply.Bytes)
	s.TimeNanos += latency
	if reply.Failed {
		s.Errors++
	}
	if reply.Documents > 0 {
		s.Documents += uint64(reply.Documents)
	}
}

// reply counts a reply for one of the statements of its request; time and bytes are shared by their number.
func (st *ShapeStatistics) reply(r *pair.Request, reply *pair.Reply, n, total int, timed bool) {
	if !reply.Further {
		st.Replies++
	}
	bytes := share(uint64(reply.Bytes), n, total)
	st.ReplyBytes += bytes
	if timed {
		nanos := share(uint64(reply.LatencyNanos), n, total)
		st.TimeNanos += nanos
		st.Latency.Add(reply.LatencyNanos)
		if r.Command == "getMore" {
			st.FurtherNanos += nanos
			st.FurtherBytes += bytes
		}
	}
	if reply.Failed {
		st.Errors++
		st.code(reply.Code)
	}
	if reply.Documents > 0 {
		st.Documents += share(uint64(reply.Documents), n, total)
	}
}

// code counts an error number.
func (st *ShapeStatistics) code(code int32) {
	for i := range st.Codes {
		if st.Codes[i].Code == code {
			st.Codes[i].Count++
			return
		}
	}
	if len(st.Codes) >= maxErrorCodes {
		code = OtherCode
		if st.Codes[len(st.Codes)-1].Code == code {
			st.Codes[len(st.Codes)-1].Count++
			return
		}
	}
	st.Codes = append(st.Codes, ErrorCode{Code: code, Count: 1})
}

func count(statements []shape.Statement) int {
	n := 0
	for _, s := range statements {
		n += s.Count
	}
	return n
}

// share divides an amount among statements by their number.
func share(amount uint64, n, total int) uint64 {
	if n == total || total == 0 {
		return amount
	}
	return amount * uint64(n) / uint64(total)
}

// Add adds o's totals.
func (s *Statistics) Add(o *Statistics) {
	s.Requests += o.Requests
	s.Errors += o.Errors
	s.Unacknowledged += o.Unacknowledged
	s.Replies += o.Replies
	s.TimeNanos += o.TimeNanos
	s.RequestBytes += o.RequestBytes
	s.ReplyBytes += o.ReplyBytes
	s.Documents += o.Documents
}

package sniff

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"tidemark/sniff/packet"
	"tidemark/sniff/reqstat"
)

// WriteMetrics writes everything that was counted since the start in Prometheus' text form. The shapes with the most time, at most top of
// them, have series of their own; the rest are summed up under the fingerprint "other", so that the number of series is bounded.
func (l *Live) WriteMetrics(w io.Writer, top int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := bufio.NewWriter(w)
	rows := make([]*liveRow, 0, len(l.rows))
	for _, r := range l.rows {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *liveRow) int {
		return cmp.Or(cmp.Compare(b.total.TimeNanos, a.total.TimeNanos), cmp.Compare(a.shape.Fingerprint, b.shape.Fingerprint), cmp.Compare(a.server, b.server))
	})
	shapes := exported(rows, top)
	writeShapes(out, shapes)
	l.writeServers(out)
	writeCounters(out, &l.counters)
	return out.Flush()
}

// exportedShape is a shape in metrics, or the sum of those without series of their own.
type exportedShape struct {
	server, fingerprint string
	info                string // the labels that describe it
	total               reqstat.Statistics
	buckets             [len(bucketBounds) + 1]uint64
}

func exported(rows []*liveRow, top int) []*exportedShape {
	var out []*exportedShape
	others := map[string]*exportedShape{}
	for i, r := range rows {
		var e *exportedShape
		if i < top && r.shape.Command != "other" {
			s := r.shape
			e = &exportedShape{server: r.server, fingerprint: s.Fingerprint.String(), info: fmt.Sprintf("db=%s,collection=%s,command=%s,shape=%s", label(s.Database), label(s.Collection), label(s.Command), label(s.Text))}
			out = append(out, e)
		} else if e = others[r.server]; e == nil {
			e = &exportedShape{server: r.server, fingerprint: "other"}
			others[r.server] = e
		}
		e.total.Add(&r.total)
		for k, n := range r.buckets {
			e.buckets[k] += n
		}
	}
	for _, e := range others {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *exportedShape) int {
		return cmp.Or(strings.Compare(a.server, b.server), strings.Compare(a.fingerprint, b.fingerprint))
	})
	return out
}

// family writes the head of a metric.
func family(w io.Writer, name, kind, help string) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func writeShapes(w io.Writer, shapes []*exportedShape) {
	family(w, "tidemark_mongo_shape_info", "gauge", "What a fingerprint stands for.")
	for _, e := range shapes {
		if e.info != "" {
			fmt.Fprintf(w, "tidemark_mongo_shape_info{instance=%s,fingerprint=%s,%s} 1\n", label(e.server), label(e.fingerprint), e.info)
		}
	}
	for _, m := range []struct {
		name, help string
		value      func(*reqstat.Statistics) uint64
	}{
		{"tidemark_mongo_requests_total", "Requests by shape.", func(s *reqstat.Statistics) uint64 { return s.Requests }},
		{"tidemark_mongo_errors_total", "Requests that failed, by shape.", func(s *reqstat.Statistics) uint64 { return s.Errors }},
		{"tidemark_mongo_request_bytes_total", "Bytes of requests, by shape.", func(s *reqstat.Statistics) uint64 { return s.RequestBytes }},
		{"tidemark_mongo_reply_bytes_total", "Bytes of replies, by shape.", func(s *reqstat.Statistics) uint64 { return s.ReplyBytes }},
		{"tidemark_mongo_documents_total", "Documents returned or changed, as far as replies say it, by shape.", func(s *reqstat.Statistics) uint64 { return s.Documents }},
	} {
		family(w, m.name, "counter", m.help)
		for _, e := range shapes {
			fmt.Fprintf(w, "%s{instance=%s,fingerprint=%s} %d\n", m.name, label(e.server), label(e.fingerprint), m.value(&e.total))
		}
	}
	const duration = "tidemark_mongo_request_duration_seconds"
	family(w, duration, "histogram", "Time from a request's first byte to its reply's first byte, by shape.")
	for _, e := range shapes {
		labels := fmt.Sprintf("instance=%s,fingerprint=%s", label(e.server), label(e.fingerprint))
		count := uint64(0)
		for i, bound := range bucketBounds {
			count += e.buckets[i]
			fmt.Fprintf(w, "%s_bucket{%s,le=\"%v\"} %d\n", duration, labels, bound, count)
		}
		count += e.buckets[len(bucketBounds)]
		fmt.Fprintf(w, "%s_bucket{%s,le=\"+Inf\"} %d\n%s_sum{%s} %v\n%s_count{%s} %d\n", duration, labels, count, duration, labels, float64(e.total.TimeNanos)/1e9, duration, labels, count)
	}
}

func (l *Live) writeServers(w io.Writer) {
	names := make([]string, 0, len(l.servers))
	for n := range l.servers {
		names = append(names, n)
	}
	slices.Sort(names)
	family(w, "tidemark_mongo_server_requests_total", "counter", "Requests by server and kind: load, hello and heartbeats (monitoring), between members (cluster), waiting on purpose (waiting).")
	for _, n := range names {
		t := l.servers[n]
		for _, k := range []struct {
			kind string
			n    uint64
		}{{"load", t.total.Requests}, {"monitoring", t.monitoring.Requests}, {"cluster", t.cluster.Requests}, {"waiting", t.waiting.Requests}} {
			fmt.Fprintf(w, "tidemark_mongo_server_requests_total{instance=%s,kind=%q} %d\n", label(n), k.kind, k.n)
		}
	}
}

func writeCounters(w io.Writer, c *Counters) {
	counter := func(name, help string, n uint64) {
		family(w, name, "counter", help)
		fmt.Fprintf(w, "%s %d\n", name, n)
	}
	gauge := func(name, help string, n int) {
		family(w, name, "gauge", help)
		fmt.Fprintf(w, "%s %d\n", name, n)
	}
	counter("tidemark_sniff_frames_total", "Frames that were decoded.", c.Frames)
	counter("tidemark_sniff_kernel_received_total", "Frames that passed the filter in the kernel.", c.Source.Received)
	counter("tidemark_sniff_kernel_copies_total", "Of these, frames that loopback shows twice: the copy was left out, and is no loss.", c.Source.Outgoing)
	counter("tidemark_sniff_kernel_dropped_total", "Frames that the kernel dropped because the ring was full.", c.Source.Dropped)
	counter("tidemark_sniff_kernel_freezes_total", "How often the ring was full.", c.Source.Freezes)
	counter("tidemark_sniff_duplicates_total", "Segments that were captured before; they are no loss.", c.Flow.Duplicates)
	counter("tidemark_sniff_gaps_total", "Places in connections where bytes are missing.", c.Flow.Gaps)
	counter("tidemark_sniff_unmatched_requests_total", "Requests whose reply was not seen.", c.Pair.UnmatchedRequests)
	counter("tidemark_sniff_unmatched_replies_total", "Replies whose request was not seen.", c.Pair.UnmatchedReplies)
	counter("tidemark_sniff_encrypted_flows_total", "Connections that speak TLS on a server's port.", c.Flow.Encrypted)
	family(w, "tidemark_sniff_flows_forgotten_total", "counter", "Connections that were forgotten before both ends were seen to close, by reason: silent for long, silent and many others came (many), or to make room at once (room).")
	for _, r := range []struct {
		reason string
		n      uint64
	}{{"silent", c.Flow.Idle - c.Flow.Hastened}, {"many", c.Flow.Hastened}, {"room", c.Flow.Evicted}} {
		fmt.Fprintf(w, "tidemark_sniff_flows_forgotten_total{reason=%q} %d\n", r.reason, r.n)
	}
	counter("tidemark_sniff_shapes_overflow_total", "Statements that went under other because the table of shapes was full.", c.ShapeOverflow)
	counter("tidemark_sniff_shapes_evicted_total", "Shapes that were dropped because others have more load.", c.ShapesEvicted)
	family(w, "tidemark_sniff_malformed_total", "counter", "What could not be read, by kind.")
	kinds := c.Malformed()
	names := make([]string, 0, len(kinds))
	for k := range kinds {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		fmt.Fprintf(w, "tidemark_sniff_malformed_total{kind=%s} %d\n", label(k), kinds[k])
	}
	gauge("tidemark_sniff_flows", "Connections that are followed.", c.Flows)
	gauge("tidemark_sniff_requests_waiting", "Requests that wait for their reply.", c.Waiting)
	gauge("tidemark_sniff_buffer_bytes", "Bytes of messages that are being put together.", c.BufferBytes)
	gauge("tidemark_sniff_shapes", "Shapes that are kept.", c.Shapes)
}

// Malformed returns what could not be read, by kind; kinds that did not occur have 0.
func (c *Counters) Malformed() map[string]uint64 {
	return map[string]uint64{
		"truncated frame": c.Verdicts[packet.Truncated], "malformed frame": c.Verdicts[packet.Malformed], "fragment": c.Verdicts[packet.Fragment],
		"header": c.Flow.BadHeader, "message": c.Pair.MalformedMessage, "command": c.Pair.MalformedCommand, "reply": c.Pair.MalformedReply,
		"compression": c.Pair.MalformedCompression, "cut off": c.Pair.Unreadable, "no room": c.Flow.NoBuffer + c.Pair.NoRoom,
	}
}

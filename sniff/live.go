package sniff

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"tidemark/sniff/flow"
	"tidemark/sniff/reqstat"
	"tidemark/sniff/shape"
	"tidemark/wire/sketch"
)

const (
	// HistorySeconds is how far back a row's history goes.
	HistorySeconds = 60
	// WindowSeconds is the time over which rates and percentiles are told.
	WindowSeconds = 10
	// maxLiveShapes bounds the rows: shapes times instances, and those that were dropped since the last interval.
	maxLiveShapes = 4096
)

// Live keeps the recent past of every shape, for views, and its totals since the start, for metrics. It takes one interval after another
// from a sniffer and may be read from other goroutines.
type Live struct {
	mu       sync.Mutex
	rows     map[liveKey]*liveRow
	began    int64
	at       int64 // end of the last interval
	counters Counters
	servers  map[string]*serverTotals
	scratch  sketch.Sketch
	history  bool
}

type liveKey struct {
	server string
	shape  *shape.Shape
}

// second is what was counted in one second.
type second struct {
	at                                  int64 // the second; an older one than expected is empty
	requests, errors, timeNanos         uint64
	requestBytes, replyBytes, documents uint64
}

type liveRow struct {
	shape   *shape.Shape
	server  string
	seconds []second // HistorySeconds of them, or none where only totals are kept
	// latency are the encoded sketches of the last seconds.
	latency [WindowSeconds][]byte
	total   reqstat.Statistics
	buckets [len(bucketBounds) + 1]uint64
	codes   []reqstat.ErrorCode
	seen    int64
}

// serverTotals are the totals of one server since the start.
type serverTotals struct {
	total, monitoring, cluster, waiting reqstat.Statistics
}

// bucketBounds are the upper bounds of the histogram in metrics, in seconds.
var bucketBounds = [...]float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5}

// NewLive returns an empty one.
func NewLive() *Live {
	return &Live{rows: map[liveKey]*liveRow{}, servers: map[string]*serverTotals{}, history: true}
}

// NewTotals returns an empty one that keeps no past, only what WriteMetrics needs. It has no view.
func NewTotals() *Live {
	l := NewLive()
	l.history = false
	return l
}

// Take drains a sniffer's statistics of the interval that ended at to. Intervals shorter than a second add up.
func (l *Live) Take(s *Sniffer, from, to int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.began == 0 {
		l.began = from
	}
	l.at = to
	number := (to - 1) / 1e9
	s.Statistics().Drain(func(i *reqstat.Instance) {
		server := address(i.Server)
		t := l.servers[server]
		if t == nil {
			t = &serverTotals{}
			l.servers[server] = t
		}
		t.total.Add(&i.Total)
		t.monitoring.Add(&i.Monitoring)
		t.cluster.Add(&i.Cluster)
		t.waiting.Add(&i.Waiting)
		for _, st := range i.Touched() {
			l.row(server, st.Shape, s.finder.Other()).take(st, number)
		}
	})
	l.counters = s.Counters()
	l.forget(s.finder.Other())
}

// row returns the row of a shape, or that of other when there is no room.
func (l *Live) row(server string, s, other *shape.Shape) *liveRow {
	key := liveKey{server, s}
	r := l.rows[key]
	if r == nil {
		if len(l.rows) >= maxLiveShapes && s != other {
			return l.row(server, other, other)
		}
		r = &liveRow{shape: s, server: server}
		if l.history {
			r.seconds = make([]second, HistorySeconds)
		}
		l.rows[key] = r
	}
	return r
}

// forget moves the totals of shapes that the sniffer dropped to other.
func (l *Live) forget(other *shape.Shape) {
	for k, r := range l.rows {
		if !r.shape.Forgotten() {
			continue
		}
		delete(l.rows, k)
		o := l.row(r.server, other, other)
		o.total.Add(&r.total)
		for i, n := range r.buckets {
			o.buckets[i] += n
		}
	}
}

// take adds an interval's statistics to the second with a number.
func (r *liveRow) take(st *reqstat.ShapeStatistics, number int64) {
	r.total.Add(&st.Statistics)
	st.Latency.Histogram(func(_, to float64, n uint32) {
		at, _ := slices.BinarySearch(bucketBounds[:], to/1e9)
		r.buckets[at] += uint64(n)
	})
	r.mergeCodes(st.Codes)
	if r.seconds != nil {
		r.remember(st, number)
	}
}

// remember adds an interval's statistics to the past.
func (r *liveRow) remember(st *reqstat.ShapeStatistics, number int64) {
	sec := &r.seconds[number%HistorySeconds]
	if sec.at != number {
		*sec = second{at: number}
	}
	sec.requests += st.Requests
	sec.errors += st.Errors
	sec.timeNanos += st.TimeNanos
	sec.requestBytes += st.RequestBytes
	sec.replyBytes += st.ReplyBytes
	sec.documents += st.Documents
	slot := &r.latency[number%WindowSeconds]
	if r.seen == number && len(*slot) > 0 {
		var have sketch.Sketch
		if have.Decode(*slot) == nil {
			st.Latency.Merge(&have)
		}
	}
	*slot = (*slot)[:0]
	if st.Latency.Count > 0 {
		*slot = st.Latency.Append(*slot)
	}
	// Slots of seconds that were passed over are stale.
	for n := max(r.seen+1, number-WindowSeconds+1); n < number; n++ {
		r.latency[n%WindowSeconds] = r.latency[n%WindowSeconds][:0]
	}
	r.seen = number
}

// mergeCodes adds error numbers, of which a few are kept.
func (r *liveRow) mergeCodes(codes []reqstat.ErrorCode) {
	for _, c := range codes {
		at := slices.IndexFunc(r.codes, func(k reqstat.ErrorCode) bool { return k.Code == c.Code })
		switch {
		case at >= 0:
			r.codes[at].Count += c.Count
		case len(r.codes) < 16:
			r.codes = append(r.codes, c)
		}
	}
}

// address writes an endpoint as "address:port".
func address(e flow.Endpoint) string {
	return netip.AddrPortFrom(netip.AddrFrom16(e.Address).Unmap(), e.Port).String()
}

// Row is one shape in a view. Rates are per second over the window.
type Row struct {
	Instance    string  `json:"instance"`
	Fingerprint string  `json:"fingerprint"`
	Shape       string  `json:"shape"`
	Namespace   string  `json:"namespace"`
	Command     string  `json:"command"`
	Load        float64 `json:"load"` // time spent per second of time: 1 is one request at every moment
	Rate        float64 `json:"requests_per_second"`
	ErrorRate   float64 `json:"errors_per_second"`
	P50Millis   float64 `json:"p50_ms"`
	P95Millis   float64 `json:"p95_ms"`
	P99Millis   float64 `json:"p99_ms"`
	MaxMillis   float64 `json:"max_ms"`
	InRate      float64 `json:"request_bytes_per_second"`
	OutRate     float64 `json:"reply_bytes_per_second"`
	Documents   float64 `json:"documents_per_second"`
	Requests    uint64  `json:"requests_total"`
	Errors      uint64  `json:"errors_total"`
	// History is the load of the last seconds, oldest first.
	History []float64 `json:"-"`
	// Codes are the error numbers since the start.
	Codes []reqstat.ErrorCode `json:"-"`
}

// View is what a live table shows.
type View struct {
	// At is the end of the last interval, Unix nanoseconds; 0 before the first. Seconds is the length of the window so far.
	At      int64   `json:"at"`
	Seconds float64 `json:"seconds"`
	Load    float64 `json:"load"`
	Rate    float64 `json:"requests_per_second"`
	Errors  float64 `json:"errors_per_second"`
	InRate  float64 `json:"request_bytes_per_second"`
	OutRate float64 `json:"reply_bytes_per_second"`
	// P95Millis is over all shapes.
	P95Millis float64   `json:"p95_ms"`
	History   []float64 `json:"-"`
	Rows      []Row     `json:"shapes"`
	Counters  Counters  `json:"-"`
}

// Order is what the rows of a view are sorted by, largest first.
type Order uint8

// The orders.
const (
	ByLoad Order = iota
	ByRate
	ByP95
	ByErrors
	ByBytes
)

// View returns the shapes that were met within the history, sorted; filter keeps those whose text, namespace or instance holds it.
func (l *Live) View(order Order, filter string) View {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := View{At: l.at, Counters: l.counters, History: make([]float64, HistorySeconds), Rows: []Row{}}
	number := (l.at - 1) / 1e9
	v.Seconds = min(WindowSeconds, max(float64(l.at-l.began)/1e9, 1e-3))
	var all sketch.Sketch
	filter = strings.ToLower(filter)
	for _, r := range l.rows {
		row, ok := l.view(r, number, v.Seconds)
		if !ok || filter != "" && !strings.Contains(strings.ToLower(row.Namespace+" "+row.Shape+" "+row.Instance+" "+row.Fingerprint), filter) {
			continue
		}
		v.Load += row.Load
		v.Rate += row.Rate
		v.Errors += row.ErrorRate
		v.InRate += row.InRate
		v.OutRate += row.OutRate
		for i, h := range row.History {
			v.History[i] += h
		}
		all.Merge(&l.scratch)
		v.Rows = append(v.Rows, row)
	}
	v.P95Millis = all.Quantile(0.95) / 1e6
	sortRows(v.Rows, order)
	return v
}

func sortRows(rows []Row, order Order) {
	key := func(r *Row) float64 {
		switch order {
		case ByRate:
			return r.Rate
		case ByP95:
			return r.P95Millis
		case ByErrors:
			return r.ErrorRate
		case ByBytes:
			return r.InRate + r.OutRate
		}
		return r.Load
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(key(&b), key(&a)), cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Shape, b.Shape), cmp.Compare(a.Instance, b.Instance))
	})
}

// view makes the row of a shape; its window's sketch is left in scratch. ok is false when nothing was met within the history.
func (l *Live) view(r *liveRow, number int64, seconds float64) (Row, bool) {
	row := Row{
		Instance: r.server, Fingerprint: r.shape.Fingerprint.String(), Shape: r.shape.Text, Namespace: r.shape.Namespace(), Command: r.shape.Command,
		Requests: r.total.Requests, Errors: r.total.Errors, Codes: slices.Clone(r.codes), History: make([]float64, HistorySeconds),
	}
	l.scratch.Reset()
	if r.seconds == nil || number-r.seen >= HistorySeconds {
		return row, false
	}
	var window second
	var one sketch.Sketch
	for back := range int64(HistorySeconds) {
		sec := &r.seconds[(number-back+HistorySeconds)%HistorySeconds]
		if sec.at != number-back {
			continue
		}
		row.History[HistorySeconds-1-back] = float64(sec.timeNanos) / 1e9
		if back >= WindowSeconds {
			continue
		}
		window.add(sec)
		if encoded := r.latency[(number-back)%WindowSeconds]; len(encoded) > 0 && one.Decode(encoded) == nil {
			l.scratch.Merge(&one)
		}
	}
	row.Load = float64(window.timeNanos) / 1e9 / seconds
	row.Rate, row.ErrorRate = float64(window.requests)/seconds, float64(window.errors)/seconds
	row.InRate, row.OutRate = float64(window.requestBytes)/seconds, float64(window.replyBytes)/seconds
	row.Documents = float64(window.documents) / seconds
	row.P50Millis, row.P95Millis = l.scratch.Quantile(0.5)/1e6, l.scratch.Quantile(0.95)/1e6
	row.P99Millis, row.MaxMillis = l.scratch.Quantile(0.99)/1e6, float64(l.scratch.Max)/1e6
	return row, true
}

func (s *second) add(o *second) {
	s.requests += o.requests
	s.errors += o.errors
	s.timeNanos += o.timeNanos
	s.requestBytes += o.requestBytes
	s.replyBytes += o.replyBytes
	s.documents += o.documents
}

// Bar is one bar of a latency histogram: the requests that took from From to To milliseconds.
type Bar struct {
	From, To float64
	Count    uint64
}

const barsPerDecade = 4

// Histogram returns the latencies of one shape over the window, in bars of which four make a power of ten.
func (l *Live) Histogram(instance, fingerprint string) []Bar {
	l.mu.Lock()
	defer l.mu.Unlock()
	number := (l.at - 1) / 1e9
	counts := map[int]uint64{}
	for _, r := range l.rows {
		if r.server != instance || r.shape.Fingerprint.String() != fingerprint {
			continue
		}
		if _, ok := l.view(r, number, 1); ok {
			l.scratch.Histogram(func(from, to float64, n uint32) {
				counts[int(math.Floor(barsPerDecade*math.Log10((from+to)/2e6)))] += uint64(n)
			})
		}
	}
	var bars []Bar
	for k, n := range counts {
		bars = append(bars, Bar{From: math.Pow(10, float64(k)/barsPerDecade), To: math.Pow(10, float64(k+1)/barsPerDecade), Count: n})
	}
	slices.SortFunc(bars, func(a, b Bar) int { return cmp.Compare(a.From, b.From) })
	return bars
}

// labelEscapes are the only ones of Prometheus' text form; shapes and names hold no control characters.
var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// label quotes a value of a label.
func label(s string) string { return `"` + labelEscapes.Replace(s) + `"` }

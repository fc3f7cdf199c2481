package sniff

import (
	"math"
	"slices"
	"strings"
	"time"

	"tidemark/model"
	"tidemark/sniff/flow"
	"tidemark/sniff/reqstat"
	"tidemark/sniff/shape"
	"tidemark/wire/sketch"
)

// Item is an item of the agent's host that a sniffer's statistics fill.
type Item struct {
	Key, Name, Units string
	// Type is Uint, Float, or Binary for an encoded sketch of latencies.
	Type model.ValueType
	// Interval is that of the statistics; an interval without a request has no value.
	Interval time.Duration
	// Labels are sorted by name.
	Labels model.Labels
}

// ItemValue is one value of an item.
type ItemValue struct {
	// Item stays the same for as long as its shape lives, so that it may be kept and compared.
	Item *Item
	// At is the end of the interval, Unix nanoseconds.
	At int64
	// Bits is an integer, or math.Float64bits; Bytes is what a Binary item holds, valid during the call.
	Bits  uint64
	Bytes []byte
}

// Items turns intervals into values of items: amounts of the interval (not sums since the start), so that any range is their sum, and
// sketches of latencies, which add up as well. What nobody asked for costs nothing.
//
//	mongo.shape[INSTANCE,FINGERPRINT,requests|errors|time|latency|p50|p95|p99|bytes.in|bytes.out|docs]
//	mongo.shape[INSTANCE,FINGERPRINT,errors.CODE]
//	mongo.instance[INSTANCE,requests|errors|time|latency|p95|bytes.in|bytes.out|docs|monitoring|cluster|waiting]
//	mongo.client[INSTANCE,APPLICATION,ADDRESS,requests|errors|time|latency|bytes.in|bytes.out]
//	mongo.sniff[connections|dropped|gaps|duplicates|encrypted|unmatched|unread|shapes]
type Items struct {
	interval time.Duration
	shapes   map[itemKey]*[shapeItems]Item
	servers  map[flow.Endpoint]*[serverItems]Item
	clients  map[clientKey]*[clientItems]Item
	codes    map[codeKey]*Item
	own      [ownItems]Item
	buffer   []byte
	// instance and sampled are set for what a server tells of itself: its name, and where it tells it.
	instance, sampled string
	told              [toldItems]Item
	// Spent, if not nil, hears of the time that each shape took in an interval.
	Spent func(instance string, of *shape.Shape, nanos uint64)
}

type itemKey struct {
	server flow.Endpoint
	shape  *shape.Shape
}

type clientKey struct {
	server flow.Endpoint
	client reqstat.Client
}

const (
	// maxClientItems bounds the clients that have items of their own.
	maxClientItems = 200
	// maxCodeItems bounds the error numbers of shapes that have items of their own.
	maxCodeItems = 2000
)

// quantity is one of the items of a thing.
type quantity struct {
	name, title, units string
	kind               model.ValueType
}

var (
	requestQuantity = quantity{"requests", "requests", "", model.Uint}
	errorQuantity   = quantity{"errors", "errors", "", model.Uint}
	timeQuantity    = quantity{"time", "time spent", "s", model.Float}
	latencyQuantity = quantity{"latency", "latency", "", model.Binary}
	p50Quantity     = quantity{"p50", "latency, median", "s", model.Float}
	p95Quantity     = quantity{"p95", "latency, 95th percentile", "s", model.Float}
	p99Quantity     = quantity{"p99", "latency, 99th percentile", "s", model.Float}
	inQuantity      = quantity{"bytes.in", "bytes of requests", "B", model.Uint}
	outQuantity     = quantity{"bytes.out", "bytes of replies", "B", model.Uint}
	docsQuantity    = quantity{"docs", "documents", "", model.Uint}

	shapeMeasures  = [...]quantity{requestQuantity, errorQuantity, timeQuantity, latencyQuantity, p50Quantity, p95Quantity, p99Quantity, inQuantity, outQuantity, docsQuantity}
	clientMeasures = [...]quantity{requestQuantity, errorQuantity, timeQuantity, inQuantity, outQuantity, latencyQuantity}
	serverMeasures = [...]quantity{
		requestQuantity, errorQuantity, timeQuantity, latencyQuantity, p95Quantity, inQuantity, outQuantity, docsQuantity,
		{"monitoring", "hello and heartbeats", "", model.Uint},
		{"cluster", "requests within the cluster", "", model.Uint},
		{"waiting", "requests that wait on purpose", "", model.Uint},
	}
	ownMeasures = [...]quantity{
		{"connections", "connections", "", model.Uint},
		{"dropped", "frames dropped by the kernel", "", model.Uint},
		{"gaps", "gaps in connections", "", model.Uint},
		{"duplicates", "segments captured twice", "", model.Uint},
		{"encrypted", "encrypted connections", "", model.Uint},
		{"unmatched", "requests and replies without the other", "", model.Uint},
		{"unread", "messages not understood", "", model.Uint},
		{"shapes", "shapes", "", model.Uint},
	}
	toldMeasures = [...]quantity{
		{"told", "requests that the server told of", "", model.Uint},
		{"unread", "requests told of that could not be read", "", model.Uint},
		{"shapes", "shapes", "", model.Uint},
	}
)

const (
	shapeItems  = len(shapeMeasures)
	clientItems = len(clientMeasures)
	serverItems = len(serverMeasures)
	ownItems    = len(ownMeasures)
	toldItems   = len(toldMeasures)
)

// NewItems returns a converter for intervals of the given length.
func NewItems(interval time.Duration) *Items {
	n := &Items{interval: interval, shapes: map[itemKey]*[shapeItems]Item{}, servers: map[flow.Endpoint]*[serverItems]Item{}, clients: map[clientKey]*[clientItems]Item{}, codes: map[codeKey]*Item{}}
	for i, m := range ownMeasures {
		n.own[i] = n.item("mongo.sniff["+m.name+"]", "MongoDB sniffer: "+m.title, m, nil)
	}
	return n
}

// NewSampledItems returns a converter for requests of one server that were not sniffed but told, by its log or its profiler. They are an instance
// of their own, "ADDRESS (SOURCE)", and have the label sampled, so that nobody adds them to what was sniffed or takes them for all requests.
//
//	mongo.sampled[INSTANCE,told|unread|shapes]
func NewSampledItems(interval time.Duration, address, source string) *Items {
	n := NewItems(interval)
	n.instance, n.sampled = address+" ("+source+")", source
	for i, m := range toldMeasures {
		n.told[i] = n.item("mongo.sampled["+parameter(n.instance)+","+m.name+"]", "MongoDB "+n.instance+": "+m.title, m, n.labels(model.Label{Name: "instance", Value: n.instance}))
	}
	return n
}

// name is how an instance is called.
func (n *Items) name(server flow.Endpoint) string {
	if n.instance != "" {
		return n.instance
	}
	return address(server)
}

// labels adds the label that marks sampled items to others, which are sorted.
func (n *Items) labels(list ...model.Label) model.Labels {
	if n.sampled == "" {
		return list
	}
	at := slices.IndexFunc(list, func(l model.Label) bool { return l.Name > "sampled" })
	if at < 0 {
		at = len(list)
	}
	return slices.Insert(list, at, model.Label{Name: "sampled", Value: n.sampled})
}

func (n *Items) item(key, name string, m quantity, labels model.Labels) Item {
	return Item{Key: key, Name: name, Units: m.units, Type: m.kind, Interval: n.interval, Labels: labels}
}

// Take drains a sniffer's statistics of the interval that ended at to, and hands the values to put. Call it from RunOptions.Tick.
func (n *Items) Take(s *Sniffer, to int64, put func(ItemValue)) {
	n.drain(s.Statistics(), to, put)
	c := s.Counters()
	l := c.Losses()
	for k, v := range [ownItems]uint64{uint64(c.Flows), l.KernelDrops, l.Gaps, l.Duplicates, l.EncryptedFlows, l.UnmatchedRequests + l.UnmatchedReplies, l.Unread, uint64(c.Shapes)} {
		put(ItemValue{Item: &n.own[k], At: to, Bits: v})
	}
	n.forget()
}

// TakeSampled does the same for what a server told, where NewSampledItems made the converter.
func (n *Items) TakeSampled(s *Sampled, to int64, put func(ItemValue)) {
	n.drain(s.stats, to, put)
	for k, v := range [toldItems]uint64{s.told, s.unread, uint64(s.finder.Len())} {
		put(ItemValue{Item: &n.told[k], At: to, Bits: v})
	}
	s.makeRoom()
	n.forget()
}

func (n *Items) drain(t *reqstat.Table, to int64, put func(ItemValue)) {
	t.Drain(func(i *reqstat.Instance) {
		for _, st := range i.Touched() {
			n.shape(i, st, to, put)
			if n.Spent != nil && st.TimeNanos > 0 {
				n.Spent(n.name(i.Server), st.Shape, st.TimeNanos)
			}
		}
		n.server(i, to, put)
		i.Clients(func(c reqstat.Client, st *reqstat.Statistics, latency *sketch.Sketch) {
			n.client(i, c, st, latency, func(v ItemValue) { v.At = to; put(v) })
		})
	})
}

// forget drops the items of shapes that made room.
func (n *Items) forget() {
	for k := range n.shapes {
		if k.shape.Forgotten() {
			delete(n.shapes, k)
		}
	}
	for k := range n.codes {
		if k.shape.Forgotten() {
			delete(n.codes, k)
		}
	}
}

func (n *Items) shape(i *reqstat.Instance, st *reqstat.ShapeStatistics, at int64, put func(ItemValue)) {
	key := itemKey{i.Server, st.Shape}
	items := n.shapes[key]
	if items == nil {
		items = n.shapeItems(i.Server, st.Shape)
		n.shapes[key] = items
	}
	answered := st.Latency.Count > 0
	for k, m := range shapeMeasures {
		v := ItemValue{Item: &items[k], At: at}
		switch m.kind {
		case model.Binary:
			n.buffer = st.Latency.Append(n.buffer[:0])
			v.Bytes = n.buffer
		case model.Uint:
			v.Bits = amountOf(m.name, &st.Statistics)
		default:
			v.Bits = math.Float64bits(secondsOf(m.name, &st.Statistics, st.Latency.Quantile))
		}
		if !answered && (m.kind == model.Binary || m.name[0] == 'p') {
			continue
		}
		put(v)
	}
	for _, c := range st.Codes {
		if item := n.code(key, &items[0], c.Code); item != nil {
			put(ItemValue{Item: item, At: at, Bits: c.Count})
		}
	}
}

// amountOf returns a whole number of a name.
func amountOf(name string, s *reqstat.Statistics) uint64 {
	switch name {
	case "requests":
		return s.Requests
	case "errors":
		return s.Errors
	case "bytes.in":
		return s.RequestBytes
	case "bytes.out":
		return s.ReplyBytes
	}
	return s.Documents
}

// secondsOf returns a time of a name.
func secondsOf(name string, s *reqstat.Statistics, quantile func(float64) float64) float64 {
	switch name {
	case "p50":
		return quantile(0.5) / 1e9
	case "p95":
		return quantile(0.95) / 1e9
	case "p99":
		return quantile(0.99) / 1e9
	}
	return float64(s.TimeNanos) / 1e9
}

func (n *Items) shapeItems(server flow.Endpoint, s *shape.Shape) *[shapeItems]Item {
	fingerprint, namespace := s.Fingerprint.String(), s.Namespace()
	if s.Command == shape.OtherText {
		fingerprint, namespace = shape.OtherText, shape.OtherText
	}
	name := n.name(server)
	labels := n.labels(
		model.Label{Name: "collection", Value: s.Collection},
		model.Label{Name: "command", Value: s.Command},
		model.Label{Name: "db", Value: s.Database},
		model.Label{Name: "fingerprint", Value: fingerprint},
		model.Label{Name: "instance", Value: name},
		model.Label{Name: "namespace", Value: namespace},
		model.Label{Name: "shape", Value: s.Text},
	)
	var items [shapeItems]Item
	for k, m := range shapeMeasures {
		items[k] = n.item("mongo.shape["+parameter(name)+","+fingerprint+","+m.name+"]", s.Namespace()+" "+s.Command+": "+m.title, m, labels)
	}
	return &items
}

func (n *Items) server(i *reqstat.Instance, at int64, put func(ItemValue)) {
	items := n.servers[i.Server]
	if items == nil {
		items = &[serverItems]Item{}
		name := n.name(i.Server)
		for k, m := range serverMeasures {
			items[k] = n.item("mongo.instance["+parameter(name)+","+m.name+"]", "MongoDB "+name+": "+m.title, m, n.labels(model.Label{Name: "instance", Value: name}))
		}
		n.servers[i.Server] = items
	}
	for k, m := range serverMeasures {
		v := ItemValue{Item: &items[k], At: at}
		switch m.name {
		case "latency":
			n.buffer = i.Latency.Append(n.buffer[:0])
			v.Bytes = n.buffer
		case "p95", "time":
			v.Bits = math.Float64bits(secondsOf(m.name, &i.Total, i.Latency.Quantile))
		case "monitoring":
			v.Bits = i.Monitoring.Requests
		case "cluster":
			v.Bits = i.Cluster.Requests
		case "waiting":
			v.Bits = i.Waiting.Requests
		default:
			v.Bits = amountOf(m.name, &i.Total)
		}
		if i.Latency.Count == 0 && (m.kind == model.Binary || m.name == "p95") {
			continue
		}
		put(v)
	}
}

func (n *Items) client(i *reqstat.Instance, c reqstat.Client, st *reqstat.Statistics, latency *sketch.Sketch, put func(ItemValue)) {
	if st.Requests == 0 && st.Replies == 0 {
		return
	}
	key := clientKey{i.Server, c}
	items := n.clients[key]
	if items == nil {
		if len(n.clients) >= maxClientItems {
			return
		}
		items = &[clientItems]Item{}
		host, _, _ := strings.Cut(address(flow.Endpoint{Address: c.Address.Address}), ":0")
		server := n.name(i.Server)
		labels := n.labels(model.Label{Name: "application", Value: c.Application}, model.Label{Name: "client", Value: host}, model.Label{Name: "instance", Value: server})
		for k, m := range clientMeasures {
			items[k] = n.item("mongo.client["+parameter(server)+","+parameter(c.Application)+","+parameter(host)+","+m.name+"]", c.Application+" at "+host+": "+m.title, m, labels)
		}
		n.clients[key] = items
	}
	for k, m := range clientMeasures {
		v := ItemValue{Item: &items[k]}
		switch m.kind {
		case model.Float:
			v.Bits = math.Float64bits(float64(st.TimeNanos) / 1e9)
		case model.Binary:
			if latency == nil || latency.Count == 0 {
				continue
			}
			n.buffer = latency.Append(n.buffer[:0])
			v.Bytes = n.buffer
		default:
			v.Bits = amountOf(m.name, st)
		}
		put(v)
	}
}

// parameter writes a parameter of an item key, quoted where the notation needs it.
func parameter(s string) string {
	if s == "" || strings.ContainsAny(s, "[],\"") || s[0] == ' ' {
		return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"`
	}
	return s
}

// Package requests is the read side of the MongoDB request monitor: which requests cost most over a range, one of them closely, and two
// ranges compared.
//
// What agents store are amounts of short intervals (mongo.shape, mongo.instance and mongo.client items, see docs/user/mongodb.md) and
// sketches of latencies. Both add up, so the numbers of any range are the sums of its intervals, and percentiles come from merged sketches:
// they are those of the range, not averages of percentiles. For long ranges the amounts of whole hours come from hourly trends, which hold
// exact sums. An interval counts for the range in which it ends.
package requests

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"tidemark/model"
	"tidemark/query"
	"tidemark/wire/sketch"
)

// Catalog knows which items exist. Match finds numeric items only; a sketch is found by its key.
type Catalog interface {
	query.Catalog
	ByKey(host model.HostID, key string) (model.Entry, bool)
}

// Reader answers questions about requests. It is safe for use by several goroutines.
type Reader struct {
	querier *query.Querier
	catalog Catalog
}

// New returns a reader over a querier and its catalog.
func New(querier *query.Querier, catalog Catalog) *Reader {
	return &Reader{querier: querier, catalog: catalog}
}

// Instance is a MongoDB server as one agent sees it.
type Instance struct {
	HostID model.HostID
	// Host is the technical name of the host whose agent watches it.
	Host string
	// Address is the server's address and port.
	Address string
	// items are those of mongo.instance.
	items measureItems
	// interval is that of the stored statistics, above zero.
	interval time.Duration
}

// ID names an instance among all: HOST/ADDRESS.
func (i *Instance) ID() string { return i.Host + "/" + i.Address }

// Group says what the rows of a ranking are.
type Group string

// The groups.
const (
	ByShape       Group = "shape"
	ByCollection  Group = "collection"
	ByCommand     Group = "command"
	ByApplication Group = "application"
	ByClient      Group = "client"
)

// Groups are all of them.
var Groups = []Group{ByShape, ByCollection, ByCommand, ByApplication, ByClient}

// ofClients reports whether the rows come from the statistics of clients.
func (g Group) ofClients() bool { return g == ByApplication || g == ByClient }

// Sums are the totals of one thing over a range. The numbers are exact.
type Sums struct {
	Requests, Errors, BytesIn, BytesOut, Documents uint64
	// Seconds is the time spent in requests.
	Seconds float64
	// Latency is nil where no latencies are kept or none were read.
	Latency *sketch.Sketch
}

// Add adds the totals of o.
func (s *Sums) Add(o *Sums) {
	s.Requests += o.Requests
	s.Errors += o.Errors
	s.BytesIn += o.BytesIn
	s.BytesOut += o.BytesOut
	s.Documents += o.Documents
	s.Seconds += o.Seconds
	if o.Latency == nil {
		return
	}
	if s.Latency == nil {
		s.Latency = new(sketch.Sketch)
	}
	s.Latency.Merge(o.Latency)
}

// Quantile returns a quantile of the latency in seconds; false when no latencies are known.
func (s *Sums) Quantile(q float64) (float64, bool) {
	if s.Latency == nil || s.Latency.Count == 0 {
		return 0, false
	}
	return s.Latency.Quantile(q) / 1e9, true
}

// Names say what a row stands for; those that do not fit its group are empty.
type Names struct {
	// ID is a fingerprint, or the text of the group.
	ID                                   string
	Database, Collection, Command, Shape string
	Application, Client                  string
}

// Namespace returns "database.collection", or the bare database.
func (n *Names) Namespace() string {
	if n.Collection == "" {
		return n.Database
	}
	return n.Database + "." + n.Collection
}

// OtherID is the row of all that found no room of its own.
const OtherID = "other"

// measure is one of the quantities of a thing.
type measure uint8

const (
	requestMeasure measure = iota
	errorMeasure
	timeMeasure
	inMeasure
	outMeasure
	documentMeasure
	latencyMeasure
	measureCount
)

var measureNames = [measureCount]string{"requests", "errors", "time", "bytes.in", "bytes.out", "docs", "latency"}

// amounts are the measures that are numbers.
var amounts = []measure{requestMeasure, errorMeasure, timeMeasure, inMeasure, outMeasure, documentMeasure}

// measureItems are the items of one thing; zero where there is none.
type measureItems [measureCount]model.ItemID

// defaultInterval is that of agents which say none.
const defaultInterval = 10 * time.Second

// The names that PromQL gives the items, and the label that has them.
const (
	nameLabel      = "__name__"
	shapeMetric    = "mongo_shape"
	instanceMetric = "mongo_instance"
	clientMetric   = "mongo_client"
)

// splitKey parts a key at its last parameter, which names the measure: "mongo.shape[a,b,time]" into "mongo.shape[a,b" and "time".
func splitKey(key string) (thing, measure string, ok bool) {
	comma := strings.LastIndexByte(key, ',')
	if comma < 0 || !strings.HasSuffix(key, "]") {
		return "", "", false
	}
	return key[:comma], key[comma+1 : len(key)-1], true
}

// fingerprintOf returns the last parameter of what splitKey calls thing.
func fingerprintOf(thing string) string {
	return thing[strings.LastIndexByte(thing, ',')+1:]
}

// equal makes a matcher.
func equal(name, value string) *labels.Matcher {
	return labels.MustNewMatcher(labels.MatchEqual, name, value)
}

// Instances returns all instances of which something is kept, by host and address.
func (r *Reader) Instances() []Instance {
	return r.instances(equal(nameLabel, instanceMetric))
}

func (r *Reader) instances(matchers ...*labels.Matcher) []Instance {
	type place struct {
		host  model.HostID
		thing string
	}
	var found []Instance
	at := make(map[place]int)
	for _, id := range r.catalog.Match(matchers...) {
		e, ok := r.catalog.Item(id)
		if !ok {
			continue
		}
		thing, name, ok := splitKey(e.Key)
		if !ok {
			continue
		}
		n, known := at[place{e.HostID, thing}]
		if !known {
			address := r.catalog.OwnLabels(id).Get("instance")
			if address == "" {
				continue
			}
			n = len(found)
			at[place{e.HostID, thing}] = n
			found = append(found, Instance{HostID: e.HostID, Host: e.Host, Address: address, interval: e.Interval})
			found[n].items[latencyMeasure] = r.sketchItem(e.HostID, thing)
			if e.Interval <= 0 {
				found[n].interval = defaultInterval
			}
		}
		if m := slices.Index(measureNames[:latencyMeasure], name); m >= 0 {
			found[n].items[m] = id
		}
	}
	slices.SortFunc(found, func(a, b Instance) int { return strings.Compare(a.ID(), b.ID()) })
	return found
}

// sketchItem returns the item of a thing's latencies, zero when there is none.
func (r *Reader) sketchItem(host model.HostID, thing string) model.ItemID {
	e, _ := r.catalog.ByKey(host, thing+",latency]")
	return e.ID
}

// UnknownError says that something that was asked for is not kept.
type UnknownError struct{ What, Name string }

// Error names it.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("there is no %s %.300q", e.What, e.Name)
}

// Instance returns the instance with an id. An UnknownError says that there is none.
func (r *Reader) Instance(id string) (*Instance, error) {
	if slash := strings.LastIndexByte(id, '/'); slash > 0 {
		found := r.instances(equal(nameLabel, instanceMetric), equal("host", id[:slash]), equal("instance", id[slash+1:]))
		if len(found) > 0 {
			return &found[0], nil
		}
	}
	return nil, &UnknownError{"MongoDB instance", id}
}

// thing is a shape or a client with its items and what was summed up.
type thing struct {
	names Names
	items measureItems
	// plan is the item of a shape's plan, zero when there is none.
	plan model.ItemID
	sums Sums
	// seen says that something was kept in the range.
	seen bool
	// intervals is how many of the requests were read.
	intervals int64
	// loads are the seconds spent in each slice of the range; nil when they are not asked for.
	loads []float64
}

// things finds the shapes or clients of an instance.
func (r *Reader) things(i *Instance, g Group, more ...*labels.Matcher) []thing {
	metric := shapeMetric
	if g.ofClients() {
		metric = clientMetric
	}
	matchers := append([]*labels.Matcher{equal(nameLabel, metric), equal("host", i.Host), equal("instance", i.Address)}, more...)
	var found []thing
	at := make(map[string]int)
	for _, id := range r.catalog.Match(matchers...) {
		e, ok := r.catalog.Item(id)
		if !ok {
			continue
		}
		prefix, name, ok := splitKey(e.Key)
		m := slices.Index(measureNames[:latencyMeasure], name)
		if !ok || m < 0 {
			continue
		}
		n, known := at[prefix]
		if !known {
			n = len(found)
			at[prefix] = n
			t := thing{names: namesOf(r.catalog.OwnLabels(id))}
			t.items[latencyMeasure] = r.sketchItem(i.HostID, prefix)
			if !g.ofClients() {
				t.names.ID = fingerprintOf(prefix)
				if e, ok := r.catalog.ByKey(i.HostID, planKey(prefix)); ok {
					t.plan = e.ID
				}
			}
			found = append(found, t)
		}
		found[n].items[m] = id
	}
	return found
}

func namesOf(l model.Labels) Names {
	return Names{
		Database: l.Get("db"), Collection: l.Get("collection"), Command: l.Get("command"), Shape: l.Get("shape"),
		Application: l.Get("application"), Client: l.Get("client"),
	}
}

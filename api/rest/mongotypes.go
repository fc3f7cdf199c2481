package rest

import (
	"math"
	"time"

	"tidemark/model"
	"tidemark/query/requests"
)

// MongoInstance is a MongoDB server as one agent sees it.
type MongoInstance struct {
	ID       string `json:"id"`
	HostID   string `json:"host_id"`
	Host     string `json:"host"`
	HostName string `json:"host_name"`
	Address  string `json:"address"`
}

// MongoInstanceTotal is an instance with its totals over the range of the list. Loads is the load in equal slices of the range.
type MongoInstanceTotal struct {
	MongoInstance
	WatchedMS int64     `json:"watched_ms"`
	Total     MongoSums `json:"total"`
	Loads     Numbers   `json:"loads"`
}

// MongoInstanceList is all instances; Total is more than there are rows when there are very many.
type MongoInstanceList struct {
	From      int64                `json:"from"`
	To        int64                `json:"to"`
	Instances []MongoInstanceTotal `json:"instances"`
	Total     int                  `json:"total"`
}

// MongoSums are the totals of one thing over a range: exact amounts, and rates over the time in which the instance was watched.
type MongoSums struct {
	Requests uint64 `json:"requests"`
	Errors   uint64 `json:"errors"`
	BytesIn  uint64 `json:"bytes_in"`
	BytesOut uint64 `json:"bytes_out"`
	Docs     uint64 `json:"docs"`
	// Seconds is the time spent in requests; Load is that per second, so 1 is one request at every moment.
	Seconds float64 `json:"seconds"`
	Load    float64 `json:"load"`
	// Rate is requests per second.
	Rate float64 `json:"rate"`
	// P50 to Max are latencies in seconds, null where none are known.
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
	P99 *float64 `json:"p99"`
	Max *float64 `json:"max"`
}

// MongoNames say what a row stands for; what does not fit the group is left out.
type MongoNames struct {
	// ID is the fingerprint of a shape, or the text of the group.
	ID          string `json:"id"`
	DB          string `json:"db,omitempty"`
	Collection  string `json:"collection,omitempty"`
	Command     string `json:"command,omitempty"`
	Shape       string `json:"shape,omitempty"`
	Application string `json:"application,omitempty"`
	Client      string `json:"client,omitempty"`
	// Rest says that the row is what is left of the total.
	Rest bool `json:"rest,omitempty"`
}

// MongoRange is a range with the totals of the instance. WatchedMS is for how long of it there are statistics.
type MongoRange struct {
	From      int64     `json:"from"`
	To        int64     `json:"to"`
	WatchedMS int64     `json:"watched_ms"`
	Total     MongoSums `json:"total"`
}

// MongoRow is one row of a ranking. Loads is the load in equal slices of the range.
type MongoRow struct {
	MongoNames
	Sums  MongoSums `json:"sums"`
	Loads Numbers   `json:"loads"`
}

// MongoRanking is the requests of an instance by what they cost; Found is the number of rows without the limit.
type MongoRanking struct {
	Instance MongoInstance `json:"instance"`
	MongoRange
	GroupBy string     `json:"group_by"`
	Order   string     `json:"order"`
	Rows    []MongoRow `json:"rows"`
	Found   int        `json:"found"`
}

// MongoChange is one row of a comparison.
type MongoChange struct {
	MongoNames
	Before MongoSums `json:"before"`
	After  MongoSums `json:"after"`
	// Verdict is new, slower, more, same, less, faster or gone.
	Verdict string `json:"verdict"`
	// LoadChange is the load after less the load before.
	LoadChange float64 `json:"load_change"`
}

// MongoComparison is two ranges side by side.
type MongoComparison struct {
	Instance MongoInstance `json:"instance"`
	GroupBy  string        `json:"group_by"`
	Before   MongoRange    `json:"before"`
	After    MongoRange    `json:"after"`
	Rows     []MongoChange `json:"rows"`
	Found    int           `json:"found"`
}

// MongoProfile is one shape, or a whole instance, over time. The columns begin at At and are StepMS long; where they are null nobody
// watched, and quantiles are null where nothing was answered. All are per second but the quantiles, which are seconds.
type MongoProfile struct {
	Instance MongoInstance `json:"instance"`
	MongoNames
	MongoRange
	StepMS   int64     `json:"step_ms"`
	At       []int64   `json:"at"`
	Load     Numbers   `json:"load"`
	Rate     Numbers   `json:"rate"`
	Errors   Numbers   `json:"errors"`
	BytesIn  Numbers   `json:"bytes_in"`
	BytesOut Numbers   `json:"bytes_out"`
	Docs     Numbers   `json:"docs"`
	P50      Numbers   `json:"p50"`
	P95      Numbers   `json:"p95"`
	P99      Numbers   `json:"p99"`
	Max      Numbers   `json:"max"`
	Heat     MongoHeat `json:"heat"`
	// Plan is how the server answers the shape, null where it was not asked.
	Plan *MongoPlan `json:"plan"`
	// Codes are the errors of the shape by number, what came most first.
	Codes []MongoErrorCode `json:"codes"`
}

// MongoHeat is a heat map. Bounds are the lower ends of its rows in seconds and the upper end of the last; a cell is column, row, requests.
type MongoHeat struct {
	Bounds Numbers     `json:"bounds"`
	Cells  [][3]uint64 `json:"cells"`
}

func (a *API) formatInstance(i *requests.Instance) MongoInstance {
	out := MongoInstance{ID: i.ID(), HostID: formatID(i.HostID), Host: i.Host, HostName: i.Host, Address: i.Address}
	if h, ok := a.options.Configuration().HostByID(i.HostID); ok && h.Name != "" {
		out.HostName = h.Name
	}
	return out
}

func formatNames(n *requests.Names, rest bool) MongoNames {
	return MongoNames{
		ID: n.ID, DB: n.Database, Collection: n.Collection, Command: n.Command, Shape: n.Shape, Application: n.Application, Client: n.Client, Rest: rest,
	}
}

func formatRange(r *requests.Ranking) MongoRange {
	return MongoRange{From: floorMillis(r.Range.From), To: floorMillis(r.Range.To), WatchedMS: r.Watched.Milliseconds(), Total: formatSums(&r.Total, r.Watched)}
}

func formatSums(s *requests.Sums, watched time.Duration) MongoSums {
	out := MongoSums{
		Requests: s.Requests, Errors: s.Errors, BytesIn: s.BytesIn, BytesOut: s.BytesOut, Docs: s.Documents, Seconds: s.Seconds,
		P50: quantileOf(s, 0.5), P95: quantileOf(s, 0.95), P99: quantileOf(s, 0.99), Max: quantileOf(s, 1),
	}
	if w := watched.Seconds(); w > 0 {
		out.Load, out.Rate = s.Seconds/w, float64(s.Requests)/w
	}
	return out
}

func quantileOf(s *requests.Sums, q float64) *float64 {
	if v, ok := s.Quantile(q); ok {
		return &v
	}
	return nil
}

// loadsOf turns seconds spent in equal slices of a range into loads.
func loadsOf(seconds []float64, over model.TimeRange) Numbers {
	out := make(Numbers, len(seconds))
	if len(out) == 0 {
		return out
	}
	width := time.Duration(over.To-over.From).Seconds() / float64(len(out))
	for i, s := range seconds {
		out[i] = s / width
	}
	return out
}

func (a *API) formatProfile(i *requests.Instance, p *requests.Profile) MongoProfile {
	n := len(p.Columns)
	out := MongoProfile{
		Instance: a.formatInstance(i), MongoNames: formatNames(&p.Names, false),
		MongoRange: MongoRange{From: floorMillis(p.Range.From), To: floorMillis(p.Range.To), WatchedMS: p.Watched.Milliseconds(), Total: formatSums(&p.Sums, p.Watched)},
		StepMS:     p.Step.Milliseconds(), At: make([]int64, n), Plan: formatPlan(p.Plan), Codes: formatCodes(p.Codes),
		Heat: MongoHeat{Bounds: append(Numbers{}, p.Heat.Bounds...), Cells: make([][3]uint64, 0, len(p.Heat.Cells))},
	}
	columns := []*Numbers{&out.Load, &out.Rate, &out.Errors, &out.BytesIn, &out.BytesOut, &out.Docs, &out.P50, &out.P95, &out.P99, &out.Max}
	for _, c := range columns {
		*c = make(Numbers, n)
	}
	for k := range p.Columns {
		c := &p.Columns[k]
		out.At[k] = floorMillis(p.Start + int64(k)*int64(p.Step))
		w := c.Watched.Seconds()
		amounts := [...]float64{c.Seconds, float64(c.Requests), float64(c.Errors), float64(c.BytesIn), float64(c.BytesOut), float64(c.Documents)}
		for m, v := range amounts {
			(*columns[m])[k] = v / w // not a number where nobody watched
			if w == 0 {
				(*columns[m])[k] = math.NaN()
			}
		}
		for m, v := range c.Quantiles {
			if c.Quantiles[3] == 0 {
				v = math.NaN()
			}
			(*columns[len(amounts)+m])[k] = v
		}
	}
	for _, c := range p.Heat.Cells {
		out.Heat.Cells = append(out.Heat.Cells, [3]uint64{uint64(c.Column), uint64(c.Row), c.Count})
	}
	return out
}

package sniff

import (
	"cmp"
	"slices"

	"tidemark/sniff/reqstat"
)

// Report is what an offline capture holds, in the form that `tidemark mongo report --json` prints.
type Report struct {
	Packets        uint64          `json:"packets"`
	Duplicates     uint64          `json:"duplicates"`
	Flows          uint64          `json:"flows"`
	EncryptedFlows uint64          `json:"encrypted_flows"`
	Commands       []CommandReport `json:"commands"`
	Monitoring     []CommandReport `json:"monitoring"`
	// Cluster is what members of a cluster and routers send each other, per server.
	Cluster   []CommandReport   `json:"cluster"`
	Shapes    []ShapeReport     `json:"shapes"`
	Unmatched UnmatchedReport   `json:"unmatched"`
	Gaps      uint64            `json:"gaps"`
	Reordered uint64            `json:"reordered"`
	Malformed map[string]uint64 `json:"malformed"`
}

// CommandReport is one command on one namespace.
type CommandReport struct {
	Namespace      string `json:"namespace"`
	Command        string `json:"command"`
	Requests       uint64 `json:"requests"`
	Errors         uint64 `json:"errors"`
	Unacknowledged uint64 `json:"unacknowledged"`
	RequestBytes   uint64 `json:"request_bytes"`
	ReplyBytes     uint64 `json:"reply_bytes"`
}

// ShapeReport is one shape.
type ShapeReport struct {
	Fingerprint string `json:"fingerprint"`
	Shape       string `json:"shape"`
	Namespace   string `json:"namespace"`
	Command     string `json:"command"`
	Requests    uint64 `json:"requests"`
	Errors      uint64 `json:"errors"`
	// Codes are the errors by number, what came most first.
	Codes      []CodeReport `json:"codes"`
	TimeMillis float64      `json:"time_ms"`
	P50Millis  float64      `json:"p50_ms"`
	P95Millis  float64      `json:"p95_ms"`
	P99Millis  float64      `json:"p99_ms"`
	MaxMillis  float64      `json:"max_ms"`
}

// CodeReport is an error number of the server and how often it came. Code is -1 for those that found no room of their own.
type CodeReport struct {
	Code  int32  `json:"code"`
	Count uint64 `json:"count"`
}

// UnmatchedReport counts what was not joined.
type UnmatchedReport struct {
	Requests uint64 `json:"requests"`
	Replies  uint64 `json:"replies"`
}

// Report sums up what was met so far, over all instances. The order is fixed: commands by namespace and name, shapes by time, then
// fingerprint.
func (s *Sniffer) Report() Report {
	c := s.Counters()
	r := Report{
		Packets: c.Frames, Duplicates: c.Flow.Duplicates, Flows: c.Flow.Flows, EncryptedFlows: c.Flow.Encrypted,
		Commands: []CommandReport{}, Monitoring: []CommandReport{}, Cluster: []CommandReport{}, Shapes: []ShapeReport{},
		Unmatched: UnmatchedReport{Requests: c.Pair.UnmatchedRequests, Replies: c.Pair.UnmatchedReplies},
		Gaps:      c.Flow.Gaps, Reordered: c.Flow.Reordered, Malformed: map[string]uint64{},
	}
	for kind, n := range c.Malformed() {
		if n > 0 {
			r.Malformed[kind] = n
		}
	}
	commands := map[reqstat.Command]*reqstat.Statistics{}
	shapes := map[string]*reqstat.ShapeStatistics{}
	for _, i := range s.stats.Instances() {
		i.Commands(func(k reqstat.Command, v *reqstat.Statistics) { add(commands, k, v) })
		for _, v := range i.Shapes {
			merge(shapes, v)
		}
		if i.Monitoring.Requests > 0 {
			r.Monitoring = append(r.Monitoring, commandReport(reqstat.Command{Database: "admin", Name: "hello"}, &i.Monitoring))
		}
		if i.Cluster.Requests > 0 {
			r.Cluster = append(r.Cluster, commandReport(reqstat.Command{Database: address(i.Server), Name: "cluster"}, &i.Cluster))
		}
	}
	for k, v := range commands {
		r.Commands = append(r.Commands, commandReport(k, v))
	}
	for _, v := range shapes {
		r.Shapes = append(r.Shapes, shapeReport(v))
	}
	slices.SortFunc(r.Commands, func(a, b CommandReport) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Command, b.Command))
	})
	slices.SortFunc(r.Shapes, func(a, b ShapeReport) int {
		return cmp.Or(cmp.Compare(b.TimeMillis, a.TimeMillis), cmp.Compare(a.Fingerprint, b.Fingerprint))
	})
	return r
}

func add(into map[reqstat.Command]*reqstat.Statistics, k reqstat.Command, v *reqstat.Statistics) {
	sum := into[k]
	if sum == nil {
		sum = &reqstat.Statistics{}
		into[k] = sum
	}
	sum.Add(v)
}

func merge(into map[string]*reqstat.ShapeStatistics, v *reqstat.ShapeStatistics) {
	key := v.Shape.Fingerprint.String()
	sum := into[key]
	if sum == nil {
		sum = &reqstat.ShapeStatistics{Shape: v.Shape}
		into[key] = sum
	}
	sum.Add(&v.Statistics)
	sum.Latency.Merge(&v.Latency)
	for _, c := range v.Codes {
		if at := slices.IndexFunc(sum.Codes, func(k reqstat.ErrorCode) bool { return k.Code == c.Code }); at >= 0 {
			sum.Codes[at].Count += c.Count
			continue
		}
		sum.Codes = append(sum.Codes, c)
	}
}

// codeReport returns error numbers, what came most first.
func codeReport(codes []reqstat.ErrorCode) []CodeReport {
	out := make([]CodeReport, len(codes))
	for i, c := range codes {
		out[i] = CodeReport{Code: c.Code, Count: c.Count}
	}
	slices.SortFunc(out, func(a, b CodeReport) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Code, b.Code)) })
	return out
}

func commandReport(k reqstat.Command, v *reqstat.Statistics) CommandReport {
	return CommandReport{
		Namespace: k.Namespace(), Command: k.Name, Requests: v.Requests, Errors: v.Errors, Unacknowledged: v.Unacknowledged,
		RequestBytes: v.RequestBytes, ReplyBytes: v.ReplyBytes,
	}
}

func shapeReport(v *reqstat.ShapeStatistics) ShapeReport {
	const million = 1e6
	return ShapeReport{
		Fingerprint: v.Shape.Fingerprint.String(), Shape: v.Shape.Text, Namespace: v.Shape.Namespace(), Command: v.Shape.Command,
		Requests: v.Requests, Errors: v.Errors, Codes: codeReport(v.Codes), TimeMillis: float64(v.TimeNanos) / million,
		P50Millis: v.Latency.Quantile(0.5) / million, P95Millis: v.Latency.Quantile(0.95) / million,
		P99Millis: v.Latency.Quantile(0.99) / million, MaxMillis: float64(v.Latency.Max) / million,
	}
}

package rest

import (
	"math"
	"time"

	"tidemark/model"
	"tidemark/query/requests"
)

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

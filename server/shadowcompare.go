package server

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"tidemark/api"
	"tidemark/confdb"
	"tidemark/expr"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/zabbixdb"
)

const (
	// maxComparedBytes bounds what one request brings of another server.
	maxComparedBytes = 32 << 20
	// maxComparedProblems bounds the problems of this server that are compared.
	maxComparedProblems = 50_000
	// maxReasoned bounds the differences whose reason is looked for, which takes a query each.
	maxReasoned = 2000
)

// comparison is what another server saw in a time. Times are Unix nanoseconds.
type comparison struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Tolerance is by how many nanoseconds two servers may see the same at different times.
	Tolerance int64 `json:"tolerance"`
	// Problems, if not null, are compared with those here; Items are compared by their hours.
	Problems []zabbixdb.Problem      `json:"problems"`
	Items    []zabbixdb.ComparedItem `json:"items"`
}

// problemDifference is a problem that both servers do not see alike.
type problemDifference struct {
	// Kind is only_zabbix, only_here, severity, begin or end.
	Kind string `json:"kind"`
	zabbixdb.Problem
	// Here are the times here, where both have it.
	HereBegan int64 `json:"here_began,omitempty"`
	HereEnded int64 `json:"here_ended,omitempty"`
	// Reason is the likely one.
	Reason string `json:"reason"`
}

// itemDifference is an item whose hours differ.
type itemDifference struct {
	Host string `json:"host"`
	Key  string `json:"key"`
	// Hours were compared. Of these are missing: MissingHere, MissingThere; OtherCount have another number of values, OtherValues have an average
	// that is outside of what the other server saw.
	Hours        int    `json:"hours"`
	MissingHere  int    `json:"missing_here"`
	MissingThere int    `json:"missing_in_zabbix"`
	OtherCount   int    `json:"other_count"`
	OtherValues  int    `json:"other_values"`
	Reason       string `json:"reason"`
}

// compared is the answer.
type compared struct {
	// Same is how many problems both see alike.
	Same     int                 `json:"same_problems"`
	Problems []problemDifference `json:"problems"`
	// SameItems have no difference; MissingItems are not here.
	SameItems int `json:"same_items"`
	// EmptyItems have no whole hour on either side.
	EmptyItems   int              `json:"empty_items"`
	MissingItems int              `json:"missing_items"`
	Hours        int              `json:"hours"`
	Items        []itemDifference `json:"items"`
}

func (s *Server) compareRoute() api.Route {
	return api.Route{
		Method: http.MethodPost, Pattern: "/api/shadow/compare", Permission: api.Edit, Handler: api.JSON(s.compareShadow), MaxBodyBytes: maxComparedBytes,
		Doc: &api.Doc{Summary: "Compares what a Zabbix server saw with what was seen here; asked by 'tidemark shadow report'.", Body: comparison{}, Answer: compared{}},
	}
}

func (s *Server) compareShadow(r *http.Request) (any, error) {
	var in comparison
	if err := decodeStrict(r, &in); err != nil {
		return nil, err
	}
	if in.From >= in.To || in.Tolerance < 0 {
		return nil, api.BadRequest("from is " + strconv.FormatInt(in.From, 10) + " and to " + strconv.FormatInt(in.To, 10) + ", expected a time before another")
	}
	out := &compared{Problems: []problemDifference{}, Items: []itemDifference{}}
	if in.Problems != nil {
		if err := s.compareProblems(r.Context(), &in, out); err != nil {
			return nil, err
		}
	}
	for i := range in.Items {
		if err := s.compareItem(r.Context(), &in, &in.Items[i], out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ownProblem is a problem here.
type ownProblem struct {
	model.Problem
	host, trigger string
	matched       bool
}

// ownProblems are those that began in a range, or up to the tolerance around it.
func (s *Server) ownProblems(ctx context.Context, in *comparison) ([]*ownProblem, error) {
	if err := s.events.Flush(ctx); err != nil {
		return nil, err
	}
	snapshot := s.cache.Snapshot()
	var list []*ownProblem
	f := confdb.ProblemFilter{From: in.From - in.Tolerance, To: in.To + in.Tolerance, Limit: 5000}
	for {
		page, _, err := s.db.Problems(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, p := range page {
			own := &ownProblem{Problem: p}
			if t, ok := snapshot.Trigger(p.TriggerID); ok {
				own.trigger = t.Name
			}
			if h, ok := snapshot.HostByID(p.HostID); ok {
				own.host = h.Host
			}
			list = append(list, own)
		}
		if len(page) < f.Limit {
			return list, nil
		}
		if len(list) > maxComparedProblems {
			return nil, api.BadRequest("there are more than " + strconv.Itoa(maxComparedProblems) + " problems here in that time; ask for a shorter one")
		}
		f.Before = page[len(page)-1].ID
	}
}

func (s *Server) compareProblems(ctx context.Context, in *comparison, out *compared) error {
	own, err := s.ownProblems(ctx, in)
	if err != nil {
		return err
	}
	type name struct{ host, trigger string }
	byName := make(map[name][]*ownProblem)
	for _, p := range own {
		byName[name{p.host, p.trigger}] = append(byName[name{p.host, p.trigger}], p)
	}
	partners := make([]*ownProblem, len(in.Problems))
	for _, near := range []bool{true, false} { // the nearest in time first, then what overlaps
		for i := range in.Problems {
			z := &in.Problems[i]
			if partners[i] == nil {
				if p := partner(z, byName[name{z.Host, z.Trigger}], in.Tolerance, near); p != nil {
					p.matched, partners[i] = true, p
				}
			}
		}
	}
	for i := range in.Problems {
		if err := s.compareProblem(ctx, in, &in.Problems[i], partners[i], out); err != nil {
			return err
		}
	}
	for _, p := range own {
		if !p.matched && p.At >= in.From && p.At < in.To {
			out.Problems = append(out.Problems, problemDifference{
				Kind: "only_here", Problem: zabbixdb.Problem{Host: p.host, Trigger: p.trigger, Name: p.Name, Severity: int(p.Severity), Began: p.At, Ended: p.RecoveredAt},
			})
		}
	}
	return nil
}

// partner finds the problem here that is one of Zabbix.
func partner(z *zabbixdb.Problem, list []*ownProblem, tolerance int64, near bool) *ownProblem {
	var best *ownProblem
	for _, p := range list {
		apart := max(p.At-z.Began, z.Began-p.At)
		fits := apart <= tolerance
		if !near {
			fits = (z.Ended == 0 || p.At < z.Ended) && (p.RecoveredAt == 0 || z.Began < p.RecoveredAt)
		}
		if !p.matched && fits && (best == nil || apart < max(best.At-z.Began, z.Began-best.At)) {
			best = p
		}
	}
	return best
}

func (s *Server) compareProblem(ctx context.Context, in *comparison, z *zabbixdb.Problem, p *ownProblem, out *compared) error {
	d := problemDifference{Problem: *z}
	if p == nil {
		d.Kind, d.Reason = "only_zabbix", "not looked for"
		if len(out.Problems) < maxReasoned {
			var err error
			if d.Reason, err = s.whyQuiet(ctx, z, in.Tolerance); err != nil {
				return err
			}
		}
		out.Problems = append(out.Problems, d)
		return nil
	}
	d.HereBegan, d.HereEnded = p.At, p.RecoveredAt
	apart := func(x, y int64) bool { return max(x-y, y-x) > in.Tolerance }
	switch {
	case apart(z.Began, p.At):
		d.Kind, d.Reason = "begin", "the values that made it come at other moments here, or some were missing on one side"
	case (z.Ended == 0) != (p.RecoveredAt == 0), z.Ended != 0 && apart(z.Ended, p.RecoveredAt):
		d.Kind, d.Reason = "end", "the values that ended it came at other moments or on one side only; or it was closed by hand"
	case z.Severity != int(p.Severity):
		d.Kind, d.Reason = "severity", "the severity was changed by hand, or in the configuration since the import"
	default:
		out.Same++
		return nil
	}
	out.Problems = append(out.Problems, d)
	return nil
}

// whyQuiet says why a problem of Zabbix may not be here.
func (s *Server) whyQuiet(ctx context.Context, z *zabbixdb.Problem, tolerance int64) (string, error) {
	snapshot := s.cache.Snapshot()
	h, ok := snapshot.Host(z.Host)
	switch {
	case !ok:
		return "the host is not here; import the configuration again", nil
	case !h.Enabled:
		return "the host is off here", nil
	}
	triggers := snapshot.TriggersOf(h.ID)
	at := slices.IndexFunc(triggers, func(t model.Trigger) bool { return t.Name == z.Trigger })
	if at < 0 {
		return "the trigger is not here: its discovery rule has not made it yet, or it is newer than the last import", nil
	}
	t := &triggers[at]
	if !t.Enabled {
		return "the trigger is off here", nil
	}
	if _, failure, known := s.evaluator.State(t.ID); known && failure != "" {
		return "the trigger cannot be evaluated here: " + failure, nil
	}
	e, err := expr.Parse(t.Expression)
	if err != nil {
		return "the trigger's expression cannot be read here: " + err.Error(), nil
	}
	for _, ref := range e.Refs {
		item, found := snapshot.ItemOf(ref.Host, ref.Key)
		if !found {
			return "the item " + ref.Key + " is not here", nil
		}
		if why, err := s.whyWithout(ctx, item, model.TimeRange{From: z.Began - int64(time.Hour) - tolerance, To: z.Began + tolerance + 1}); err != nil || why != "" {
			return why, err
		}
	}
	if len(t.DependsOn) > 0 {
		return "the trigger depends on another one, which may have been in a problem here", nil
	}
	return "both have the trigger and values: these differ or were evaluated at another moment; compare the item's values around that time", nil
}

// whyWithout says why an item has no value in a range; empty if it has one.
func (s *Server) whyWithout(ctx context.Context, item *model.Item, r model.TimeRange) (string, error) {
	found := false
	q := storage.Query{Items: []model.ItemID{item.ID}, Range: r, Newest: 1}
	if err := s.engine.Read(ctx, q, func(c *model.Columns) error { found = found || len(c.At) > 0; return nil }); err != nil || found {
		return "", err
	}
	if !item.Enabled {
		return "the item " + item.Key + " is off here", nil
	}
	last, err := s.latest.Get(ctx, q.Items)
	if err != nil {
		return "", err
	}
	if len(last) > 0 && last[0].Reason != "" {
		return "the item " + item.Key + " is not supported here: " + last[0].Reason, nil
	}
	for _, f := range s.cache.Snapshot().Faults(item.HostID) {
		if f.Object == item.Key {
			return "the item " + item.Key + " cannot be used here: " + f.Reason, nil
		}
	}
	early := "" // shadow mode begins with the first import
	if since := s.alerter.InShadow(); since == 0 || r.From < since*int64(time.Second) {
		early = "that was before this server knew the host ('tidemark import zabbix history' brings the values), or "
	}
	return "the item " + item.Key + " had no values here: " + early + "the agent does not send to this server too (ServerActive, Server), or no collector asks it", nil
}

// compareItem compares the whole hours of an item.
func (s *Server) compareItem(ctx context.Context, in *comparison, z *zabbixdb.ComparedItem, out *compared) error {
	item, ok := s.cache.Snapshot().ItemOf(z.Host, z.Key)
	if !ok {
		out.MissingItems++
		return nil
	}
	r := model.TimeRange{From: storage.HourOf(in.From), To: storage.HourOf(in.To)}
	here := make(map[int64]zabbixdb.ComparedHour)
	err := s.engine.Trends(ctx, storage.Query{Items: []model.ItemID{item.ID}, Range: r}, func(c *storage.TrendColumns) error {
		for i := range c.Trends {
			h := zabbixdb.HourOf(&c.Trends[i], c.Type)
			here[h.At] = h
		}
		return nil
	})
	if err != nil {
		return err
	}
	d := itemDifference{Host: z.Host, Key: z.Key}
	for _, there := range z.Hours {
		d.Hours++
		own, ok := here[there.At]
		delete(here, there.At)
		switch {
		case !ok:
			d.MissingHere++
		case otherCount(own.Count, there.Count):
			d.OtherCount++
		case outside(own.Avg, &there) && outside(there.Avg, &own):
			d.OtherValues++
		}
	}
	d.MissingThere = len(here)
	d.Hours += len(here)
	out.Hours += d.Hours
	if d.Hours == 0 {
		out.EmptyItems++
		return nil
	}
	if d.MissingHere+d.MissingThere+d.OtherCount+d.OtherValues == 0 {
		out.SameItems++
		return nil
	}
	if d.Reason, err = s.whyOther(ctx, item, &d, r); err != nil {
		return err
	}
	out.Items = append(out.Items, d)
	return nil
}

// otherCount allows a tenth, and two values at the edges of an hour.
func otherCount(x, y uint64) bool {
	apart := max(x, y) - min(x, y)
	return apart > 2 && apart*10 > max(x, y)
}

// outside reports whether an average is none that the other server's values can have: servers that ask at different moments see different
// values, but of the same range.
func outside(average float64, other *zabbixdb.ComparedHour) bool {
	slack := 0.01*math.Max(math.Abs(other.Min), math.Abs(other.Max)) + 1e-9
	return average < other.Min-slack || average > other.Max+slack
}

func (s *Server) whyOther(ctx context.Context, item *model.Item, d *itemDifference, r model.TimeRange) (string, error) {
	switch {
	case d.MissingHere == d.Hours:
		why, err := s.whyWithout(ctx, item, r)
		if why == "" && err == nil {
			why = "the item keeps no trends here, or its values are no numbers"
		}
		return why, err
	case d.MissingHere > 0:
		return "no values here in some hours: they came before the agent sent to both, or this server or its way to the agent was down; import the history for hours before", nil
	case d.OtherValues > 0:
		return "the values themselves differ: look at preprocessing, units and interval of the item on both sides", nil
	case d.MissingThere > 0:
		return "no values in Zabbix in some hours: its server was down, or the item was off there", nil
	}
	return "another number of values: the item has another interval on one side, or values are lost", nil
}

package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"tidemark/alert"
	"tidemark/model"
)

// formatProblems gives problems their form. values asks for what the items say now, which open problems have.
func (a *API) formatProblems(ctx context.Context, problems []model.Problem) ([]Problem, error) {
	configuration := a.options.Configuration()
	out := make([]Problem, 0, len(problems))
	var items []model.ItemID
	var rows []int
	links, suppressions := make([][]Link, len(problems)), make([]alert.Suppression, len(problems))
	if a.options.Alerting != nil {
		links, suppressions = a.options.Alerting.Links(problems), a.options.Alerting.Suppressions(problems)
	}
	for i := range problems {
		p := &problems[i]
		row := Problem{
			EventID: formatID(p.ID), TriggerID: formatID(p.TriggerID), HostID: formatID(p.HostID), Name: p.Name,
			Severity: p.Severity.String(), At: floorMillis(p.At), RecoveredAt: optionalMillis(p.RecoveredAt),
			OpData: a.options.Problems.OpData(ctx, p), Tags: formatTags(p.Tags), Acknowledged: p.Acknowledged, Links: links[i],
			Suppression: formatSuppression(suppressions[i]),
		}
		if t, ok := configuration.Trigger(p.TriggerID); ok {
			row.Closable = t.ManualClose && p.RecoveredAt == 0
		}
		if h, ok := configuration.HostByID(p.HostID); ok {
			row.Host, row.HostName = h.Host, visibleName(h)
		}
		if of := a.options.Problems.Items(p.TriggerID); len(of) > 0 && p.RecoveredAt == 0 {
			items, rows = append(items, of[0]), append(rows, i)
		}
		out = append(out, row)
	}
	values, err := a.options.Latest.Get(ctx, items)
	if err != nil {
		return nil, err
	}
	for n, i := range rows {
		if values[n].Last != nil {
			out[i].ValueNow = a.valueWithUnits(items[n], valueText(values[n].Last))
		}
	}
	return out, nil
}

func formatSuppression(s alert.Suppression) *Suppression {
	switch s.Until {
	case 0:
		return nil
	case model.Forever:
		return &Suppression{Maintenance: s.Maintenance}
	}
	return &Suppression{Until: optionalMillis(s.Until), Maintenance: s.Maintenance}
}

// maxValueNowBytes cuts long texts in a list of problems.
const maxValueNowBytes = 200

func (a *API) valueWithUnits(item model.ItemID, text string) string {
	if len(text) > maxValueNowBytes {
		text = strings.ToValidUTF8(text[:maxValueNowBytes], "") + "…"
	}
	if e, ok := a.options.Catalog.Item(item); ok && e.Units != "" {
		text += " " + strings.TrimPrefix(e.Units, "!")
	}
	return text
}

func (a *API) listProblems(r *http.Request) (any, error) {
	p := readParams(r)
	f := ProblemFilter{
		Open: p.flag("open"), Host: p.host(), Severities: p.severities(), Search: p.text("search"),
		Limit: p.limit() + 1, Before: model.EventID(p.cursorID("problem")),
	}
	if p.values.Has("from") || p.values.Has("to") {
		r := p.timeRange(a.options.Now().UnixNano())
		f.From, f.To = r.From, r.To
	}
	if p.err != nil {
		return nil, p.err
	}
	problems, total, err := a.options.Problems.Find(r.Context(), f)
	if err != nil {
		return nil, fmt.Errorf("find problems: %w", err)
	}
	list := ProblemList{Total: total}
	if len(problems) == f.Limit {
		problems = problems[:f.Limit-1]
		list.Next = encodeCursor("problem", formatID(problems[len(problems)-1].ID))
	}
	list.Problems, err = a.formatProblems(r.Context(), problems)
	return list, err
}

func (a *API) listTriggers(r *http.Request) (any, error) {
	p := readParams(r)
	host, search, limit, after := p.host(), strings.ToLower(p.text("search")), p.limit(), p.cursorID("trigger")
	if p.err != nil {
		return nil, p.err
	}
	configuration := a.options.Configuration()
	var triggers []*model.Trigger
	for t := range configuration.Triggers() {
		if (host == 0 || t.HostID == host) && (search == "" || contains(t.Name, search)) {
			triggers = append(triggers, t)
		}
	}
	slices.SortFunc(triggers, func(x, y *model.Trigger) int { return cmp.Compare(x.ID, y.ID) })
	list := TriggerList{Triggers: []Trigger{}, Total: len(triggers)}
	for _, t := range triggers {
		if uint64(t.ID) <= after {
			continue
		}
		if len(list.Triggers) == limit {
			list.Next = encodeCursor("trigger", list.Triggers[limit-1].ID)
			break
		}
		list.Triggers = append(list.Triggers, a.formatTrigger(t, configuration))
	}
	return list, nil
}

func (a *API) formatTrigger(t *model.Trigger, configuration Configuration) Trigger {
	expression, recovery := t.Shown()
	out := Trigger{
		ID: formatID(t.ID), HostID: formatID(t.HostID), Name: t.Name, Severity: t.Severity.String(), Expression: expression,
		RecoveryExpression: recovery, State: "unknown", Enabled: t.Enabled, DiscoveredBy: optionalID(t.DiscoveredBy),
	}
	if h, ok := configuration.HostByID(t.HostID); ok {
		out.Host = h.Host
	}
	state, ok := a.options.Problems.State(t.ID)
	if !ok {
		return out
	}
	out.Error, out.ChangedAt = state.Error, optionalMillis(state.ChangedAt)
	switch {
	case state.Error != "":
	case state.Problem:
		out.State = "problem"
	default:
		out.State = "ok"
	}
	return out
}

// overviewAge is how old an overview may be that is given to several callers.
const overviewAge = 500 * time.Millisecond

// encodedOverview returns the overview in JSON, made at most twice a second for all callers together.
func (a *API) encodedOverview(ctx context.Context) (json.RawMessage, error) {
	a.overviewMu.Lock()
	defer a.overviewMu.Unlock()
	now := a.options.Now()
	if a.overview != nil && now.Sub(a.overviewAt) < overviewAge && !now.Before(a.overviewAt) {
		return a.overview, nil
	}
	o, err := a.makeOverview(ctx, now)
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	a.overview, a.overviewAt = encoded, now
	return encoded, nil
}

func (a *API) getOverview(r *http.Request) (any, error) { return a.encodedOverview(r.Context()) }

func (a *API) getHour(*http.Request) (any, error) {
	list := HourList{Points: []HourPoint{}}
	if a.options.Hour != nil {
		list.Points = append(list.Points, a.options.Hour()...)
	}
	return list, nil
}

func (a *API) makeOverview(ctx context.Context, now time.Time) (*Overview, error) {
	health := a.options.Health()
	o := &Overview{
		Problems: make(map[string]int), ValuesPerSecond: health.ValuesPerSecond, HistoryCacheUsed: health.HistoryCacheUsed,
		Store: Store{
			UsedBytes: health.StoreUsedBytes, QuotaBytes: health.StoreQuotaBytes, From: optionalMillis(health.StoreFrom),
			To: optionalMillis(health.StoreTo), RetentionDays: health.RetentionDays,
		},
		Version: a.options.Version, StartedAt: a.options.StartedAt.UnixMilli(), Time: now.UnixMilli(),
	}
	_, o.UTCOffsetSeconds = now.Zone()
	for s := model.NotClassified; s <= model.Disaster; s++ {
		o.Problems[s.String()] = 0
	}
	problems := slices.Clone(a.options.Problems.Open())
	for i := range problems {
		o.Problems[problems[i].Severity.String()]++
	}
	// What somebody has seen comes behind what nobody has.
	seen := func(p *model.Problem) int {
		if p.Acknowledged {
			return 1
		}
		return 0
	}
	slices.SortFunc(problems, func(x, y model.Problem) int {
		return cmp.Or(cmp.Compare(seen(&x), seen(&y)), cmp.Compare(x.At, y.At), cmp.Compare(x.ID, y.ID))
	})
	var err error
	if o.Oldest, err = a.formatProblems(ctx, problems[:min(len(problems), 3)]); err != nil {
		return nil, err
	}
	open := a.openByHost()
	for h := range a.options.Configuration().Hosts() {
		if !h.Enabled {
			continue
		}
		o.Hosts.Total++
		state, _, _ := a.hostState(h, now.UnixNano())
		switch {
		case open[h.ID].count > 0:
			o.Hosts.Problem++
		case state == "ok":
			o.Hosts.OK++
		default:
			o.Hosts.Unknown++
		}
	}
	return o, nil
}

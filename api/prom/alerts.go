package prom

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"slices"
	"time"

	"tidemark/catalog"
	"tidemark/model"
)

// alert is an open problem as a firing alert.
type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	State       string            `json:"state"`
	ActiveAt    time.Time         `json:"activeAt"`
	Value       string            `json:"value"`
}

// rule is a trigger as an alerting rule. Query is the trigger's expression, which is not PromQL.
type rule struct {
	State          string            `json:"state"`
	Name           string            `json:"name"`
	Query          string            `json:"query"`
	Duration       float64           `json:"duration"`
	KeepFiringFor  float64           `json:"keepFiringFor"`
	Labels         map[string]string `json:"labels"`
	Annotations    map[string]string `json:"annotations"`
	Alerts         []alert           `json:"alerts"`
	Health         string            `json:"health"`
	LastError      string            `json:"lastError,omitempty"`
	EvaluationTime float64           `json:"evaluationTime"`
	LastEvaluation time.Time         `json:"lastEvaluation"`
	Type           string            `json:"type"`
}

// group is the rules of one host.
type group struct {
	Name           string    `json:"name"`
	File           string    `json:"file"`
	Rules          []rule    `json:"rules"`
	Interval       float64   `json:"interval"`
	Limit          int       `json:"limit"`
	EvaluationTime float64   `json:"evaluationTime"`
	LastEvaluation time.Time `json:"lastEvaluation"`
}

// formatAlert gives a problem the labels of an alert: its tags, and alertname, host and severity over them.
func formatAlert(p *model.Problem, host string) alert {
	a := alert{Labels: triggerLabels(p.Tags, p.Severity, host), Annotations: map[string]string{}, State: "firing", ActiveAt: time.Unix(0, p.At).UTC(), Value: "1"}
	a.Labels["alertname"] = p.Name
	if p.OpData != "" {
		a.Annotations["opdata"] = p.OpData
	}
	return a
}

func triggerLabels(tags []model.Tag, severity model.Severity, host string) map[string]string {
	labels := make(map[string]string, len(tags)+3)
	for _, t := range tags {
		if name := catalog.LabelName(t.Name); name != "" && t.Value != "" {
			labels[name] = t.Value
		}
	}
	labels["host"], labels["severity"] = host, severity.String()
	return labels
}

func (a *API) hostName(configuration Configuration, id model.HostID) string {
	if h, ok := configuration.HostByID(id); ok {
		return h.Host
	}
	return ""
}

func (a *API) alerts(w http.ResponseWriter, _ *http.Request) {
	configuration := a.options.Configuration()
	open := slices.Clone(a.options.Problems.Open())
	slices.SortFunc(open, func(x, y model.Problem) int { return cmp.Compare(x.ID, y.ID) })
	alerts := make([]alert, 0, len(open))
	for i := range open {
		alerts = append(alerts, formatAlert(&open[i], a.hostName(configuration, open[i].HostID)))
	}
	succeed(w, map[string]any{"alerts": alerts})
}

// defaultGroups bounds an answer that asked for no limit.
const defaultGroups = 1000

func (a *API) rules(w http.ResponseWriter, r *http.Request) {
	f := readForm(r)
	if f.err != nil {
		f.err.write(w)
		return
	}
	limit := f.limit("group_limit")
	kind := f.text("type")
	if kind != "" && kind != "alert" && kind != "record" {
		f.err = badData("invalid parameter %q: not supported value %q", "type", kind)
	}
	after, err := base64.RawURLEncoding.DecodeString(f.text("group_next_token"))
	if err != nil || len(after) > 1024 {
		f.err = badData("invalid parameter %q: it is not what the page before gave", "group_next_token")
	}
	if f.err != nil {
		f.err.write(w)
		return
	}
	if limit == 0 {
		limit = defaultGroups
	}
	groups := []group{}
	if kind != "record" {
		groups = a.groups(string(after))
	}
	data := map[string]any{"groups": groups}
	if len(groups) > limit {
		groups = groups[:limit]
		data["groups"] = groups
		data["groupNextToken"] = base64.RawURLEncoding.EncodeToString([]byte(groups[limit-1].Name))
	}
	succeed(w, data)
}

// groups returns one group per host that has triggers, by name, behind a name.
func (a *API) groups(after string) []group {
	configuration := a.options.Configuration()
	alerts := make(map[model.TriggerID][]alert)
	for _, p := range a.options.Problems.Open() {
		alerts[p.TriggerID] = append(alerts[p.TriggerID], formatAlert(&p, a.hostName(configuration, p.HostID)))
	}
	byHost := make(map[string]*group)
	now := a.options.Now().UTC()
	for t := range configuration.Triggers() {
		host := a.hostName(configuration, t.HostID)
		if !t.Enabled || host <= after {
			continue
		}
		g := byHost[host]
		if g == nil {
			g = &group{Name: host, File: "tidemark", LastEvaluation: now}
			byHost[host] = g
		}
		g.Rules = append(g.Rules, a.formatRule(t, host, alerts[t.ID], now))
	}
	groups := make([]group, 0, len(byHost))
	for _, g := range byHost {
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(x, y group) int { return cmp.Compare(x.Name, y.Name) })
	return groups
}

func (a *API) formatRule(t *model.Trigger, host string, alerts []alert, now time.Time) rule {
	query, _ := t.Shown()
	r := rule{
		State: "inactive", Name: t.Name, Query: query, Labels: triggerLabels(t.Tags, t.Severity, host),
		Annotations: map[string]string{}, Alerts: append([]alert{}, alerts...), Health: "unknown", LastEvaluation: now, Type: "alerting",
	}
	if t.Comments != "" {
		r.Annotations["description"] = t.Comments
	}
	if len(alerts) > 0 {
		r.State = "firing"
	}
	if state, ok := a.options.Problems.State(t.ID); ok {
		r.Health, r.LastError = "ok", state.Error
		if state.Error != "" {
			r.Health = "err"
		}
	}
	return r
}

package alert

import (
	"context"
	"slices"
)

// OriginZabbix marks objects that were imported from Zabbix; an import changes no others.
const OriginZabbix = "zabbix"

// Shadow says that another server tells people, and this one only watches: no action is in force.
type Shadow struct {
	// Since is Unix seconds.
	Since int64 `yaml:"since" json:"since"`
}

// Cutover says what the end of shadow mode switched on.
type Cutover struct {
	// Since is when shadow mode began, Unix seconds; zero when it was not on.
	Since   int64    `json:"since"`
	Actions []string `json:"actions"`
	Media   []string `json:"media"`
	// Off are actions and media types that stay off because they were off in Zabbix or were switched off here.
	Off []string `json:"off"`
	// Unable are media types that are on and cannot send, with the reason.
	Unable []string `json:"unable"`
}

// InShadow returns since when no action is in force because another server alerts, in Unix seconds; zero when that is not so.
func (a *Alerter) InShadow() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.config.Shadow == nil {
		return 0
	}
	return a.config.Shadow.Since
}

// BeginShadow puts all actions out of force until Cutover. Begun twice, it stays as it was.
func (a *Alerter) BeginShadow(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.config.Shadow != nil {
		return nil
	}
	next := *a.config
	next.Shadow = &Shadow{Since: a.now() / 1e9}
	return a.apply(ctx, &next)
}

// ActionsOn reports whether an action is in force.
func (a *Alerter) ActionsOn() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.config.Actions, func(o Action) bool { return !o.Disabled }) && a.config.Shadow == nil
}

// PlanCutover says what Cutover would do.
func (a *Alerter) PlanCutover() Cutover {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, c := a.afterShadow()
	return c
}

// Cutover ends shadow mode and switches on what waits for that. Problems that began before are told to nobody.
func (a *Alerter) Cutover(ctx context.Context) (Cutover, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next, c := a.afterShadow()
	return c, a.apply(ctx, next)
}

// afterShadow is the configuration with everything on that waits for the end of shadow mode; a.mu is held.
func (a *Alerter) afterShadow() (*Config, Cutover) {
	next := *a.config
	next.Shadow = nil
	next.Media, next.Actions = slices.Clone(next.Media), slices.Clone(next.Actions)
	c := Cutover{Actions: []string{}, Media: []string{}, Off: []string{}, Unable: []string{}}
	if a.config.Shadow != nil {
		c.Since = a.config.Shadow.Since
	}
	for i := range next.Media {
		m := &next.Media[i]
		if m.AwaitsCutover {
			m.Disabled, m.AwaitsCutover = false, false
			c.Media = append(c.Media, m.Name)
		}
		if m.Disabled {
			c.Off = append(c.Off, "media type "+m.Name)
		} else if ch := a.plan.channels[m.Name]; ch != nil && ch.problem != nil {
			c.Unable = append(c.Unable, m.Name+": "+ch.problem.Error())
		}
	}
	for i := range next.Actions {
		o := &next.Actions[i]
		if o.AwaitsCutover {
			o.Disabled, o.AwaitsCutover = false, false
			c.Actions = append(c.Actions, o.Name)
		}
		if o.Disabled {
			c.Off = append(c.Off, "action "+o.Name)
		}
	}
	return &next, c
}

package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"tidemark/api"
	"tidemark/collect/calc"
	"tidemark/collect/poller"
	"tidemark/collectors"
	"tidemark/confcache"
	"tidemark/model"
	"tidemark/preproc"
)

// draftHost is the name of the host that stands in for one where a template has none; it is never stored.
const draftHost = "host of a draft"

// maxMasters bounds the master items above a dependent one, as Zabbix does.
const maxMasters = 3

func (c *configurator) testItem(r *http.Request) (any, error) {
	var in itemTest
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, api.BodyError(err)
	}
	leave, err := c.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	if in.Document, err = c.limitOn(r.Context(), in.Document, in.Host); err != nil {
		return nil, err
	}
	x, err := c.draft(r.Context(), in.Document, in.Host)
	if err != nil {
		return nil, err
	}
	item, ok := x.ItemByKey(x.host.ID, x.key(in.Key))
	if !ok {
		return nil, api.NotFound(fmt.Sprintf("the document has no item with the key %s, or it has a mistake", in.Key))
	}
	out := itemTested{Steps: []testedStep{}, ValueType: item.ValueType.String()}
	value := preproc.TrialInput{Error: in.Error, At: time.Now()}
	switch {
	case in.Value != nil:
		value.Text = *in.Value
	case in.Error == "":
		if in.Host == "" {
			return nil, api.BadRequest("a template has no value now; choose a host that it is linked to, or give a value")
		}
		if value, err = c.collect(r.Context(), x, item, &out); err != nil {
			return nil, err
		}
	}
	values := []preproc.TrialInput{value}
	if in.Previous != nil {
		before := time.Duration(in.SecondsBefore * float64(time.Second))
		if before <= 0 || before > 366*24*time.Hour {
			before = max(item.Interval, time.Second)
		}
		values = []preproc.TrialInput{{Text: *in.Previous, At: value.At.Add(-before)}, value}
	}
	c.steps(item, values, &out)
	return out, nil
}

// steps runs the preprocessing and fills the answer.
func (c *configurator) steps(item *model.Item, values []preproc.TrialInput, out *itemTested) {
	trial := c.try(item, values...)
	for _, s := range trial.Steps {
		out.Steps = append(out.Steps, testedStep(s))
	}
	out.Value, out.Discarded, out.Error = trial.Value, trial.Discarded, trial.Error
}

func (c *configurator) try(item *model.Item, values ...preproc.TrialInput) preproc.Trial {
	if c.server.scripts == nil {
		return preproc.Try(item, nil, values...)
	}
	return preproc.Try(item, c.server.scripts, values...)
}

// drafted is a host as it would be with a document.
type drafted struct {
	*confcache.Snapshot
	host   *model.Host
	config *model.HostConfig
	// key expands the macros in a key.
	key func(string) string
}

// draft returns the configuration of a host as it would be with a document; without a host that of one that only has the template.
func (c *configurator) draft(ctx context.Context, text json.RawMessage, host string) (*drafted, error) {
	o := c.options()
	o.Exact, o.Known = true, nil
	if host == "" {
		var err error
		if text, err = withHost(text); err != nil {
			return nil, err
		}
		host, o.Exact = draftHost, false
	}
	_, config, err := c.server.db.Draft(ctx, spread(text, true), o, host)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, api.BadRequest(err.Error())
	case config == nil:
		return nil, api.NotFound("there is no host " + host)
	}
	global, err := c.server.db.GlobalMacros(ctx)
	if err != nil {
		return nil, err
	}
	regexps, err := c.server.db.Regexps(ctx)
	if err != nil {
		return nil, err
	}
	x := &drafted{config: config}
	x.Snapshot, x.key = confcache.Draft(config, confcache.Globals{Macros: global, Regexps: regexps})
	x.host, _ = x.HostByID(config.Host.ID)
	return x, nil
}

// withHost adds a host to a template's document that is linked to it.
func withHost(text json.RawMessage) (json.RawMessage, error) {
	var d map[string]map[string]json.RawMessage
	var templates []struct {
		Template string `json:"template"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, api.BadRequest("the document is no export in JSON: " + err.Error())
	}
	export := d["zabbix_export"]
	if export == nil || json.Unmarshal(export["templates"], &templates) != nil || len(templates) != 1 {
		return nil, api.BadRequest("the document is not of one template, and no host is named; name the host")
	}
	host, err := json.Marshal([]any{map[string]any{
		"host": draftHost, "templates": []any{map[string]string{"name": templates[0].Template}}, "groups": []any{map[string]string{"name": "Drafts"}},
	}})
	if err != nil {
		return nil, err
	}
	export["hosts"] = host
	return json.Marshal(d)
}

// collect asks for the value of an item, of a dependent one by its master.
func (c *configurator) collect(ctx context.Context, x *drafted, item *model.Item, out *itemTested) (preproc.TrialInput, error) {
	chain := []*model.Item{item}
	for chain[len(chain)-1].Type == model.Dependent {
		master, ok := x.Item(chain[len(chain)-1].MasterID)
		if !ok || len(chain) > maxMasters {
			return preproc.TrialInput{}, api.BadRequest("the master item of " + item.Key + " does not exist; choose another")
		}
		chain = append(chain, master)
	}
	source := chain[len(chain)-1]
	result, err := c.ask(ctx, x.host, source, out)
	if err != nil {
		return preproc.TrialInput{}, err
	}
	at := time.Now()
	value := preproc.TrialInput{At: at}
	switch result.Outcome {
	case poller.Value:
		text := string(result.Text)
		value.Text, out.Collected = text, &text
	case poller.Nothing:
		out.CollectError = "the answer has no value"
		value.Error = out.CollectError
	default:
		value.Error = string(result.Text)
		out.CollectError = source.Conceal(value.Error)
	}
	for n := len(chain) - 1; n > 0; n-- { // the masters' own steps come first
		trial := c.try(chain[n], value)
		if value = (preproc.TrialInput{Text: trial.Value, Error: trial.Error, At: at}); trial.Discarded {
			value.Error = "the steps of the master item " + chain[n].Key + " discard the value"
		}
	}
	return value, nil
}

// typesByThemselves are items whose values nobody asks for.
var typesByThemselves = map[model.ItemType]string{
	model.ActiveAgent: "an active agent sends", model.Trapper: "a sender sends", model.SNMPTrap: "traps bring",
}

// ask makes one check. Its text is a copy.
func (c *configurator) ask(ctx context.Context, host *model.Host, item *model.Item, out *itemTested) (poller.Result, error) {
	if how := typesByThemselves[item.Type]; how != "" {
		return poller.Result{}, api.BadRequest("values of this item cannot be asked for: " + how + " them; give a value to test its steps")
	}
	if item.Remote {
		return poller.Result{}, api.BadRequest("a proxy asks for this item, so that its value cannot be asked for here; give a value to test its steps")
	}
	kind, ok := c.server.polling.checker(item.Type)
	task := poller.Task{Item: item}
	switch {
	case item.Type == model.Calculated:
		formulas := calc.New(calc.Options{
			Items: formulaItems{c.server.names, c.server.polling.support}, Values: c.server.values, Trends: c.server.hours,
		})
		defer formulas.Forget([]model.ItemID{item.ID})
		kind = poller.Kind{Checker: formulas, Timeout: time.Minute}
	case item.Type == model.Internal:
		return poller.Result{}, api.BadRequest("an internal item is asked for where it is stored; save it, and see its value at the host")
	case !ok:
		return poller.Result{}, api.BadRequest("there is no collector for items of this type")
	default:
		task, _ = collectors.Task(host, item)
	}
	if task.Fault != "" {
		return poller.Result{}, api.BadRequest(task.Fault)
	}
	limit := task.Timeout
	if limit == 0 {
		limit = kind.Timeout
	}
	if limit == 0 {
		limit = 3 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	results := make([]poller.Result, 1)
	started := time.Now()
	kind.Checker.Check(ctx, []*poller.Task{&task}, results)
	out.Milliseconds = float64(time.Since(started).Microseconds()) / 1000
	if len(results[0].Text) > maxCollectedBytes {
		results[0].Text = results[0].Text[:maxCollectedBytes]
	}
	results[0].Text = []byte(string(results[0].Text))
	return results[0], nil
}

// maxCollectedBytes bounds a value that a test brings.
const maxCollectedBytes = 1 << 20

// Package script makes script items: JavaScript that gets its parameters and returns the value. The scripts run in processes apart.
//
// Source of the meaning: the public Zabbix manual, "Script items".
package script

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"tidemark/collect/poller"
	"tidemark/model"
)

// Runner runs JavaScript in a process apart.
type Runner interface {
	// RunFor runs the body of a function of one argument, value, for at most timeout. It returns nil without an error for null.
	RunFor(source string, value []byte, timeout time.Duration) ([]byte, error)
}

// Checker makes script items. It implements poller.Checker.
type Checker struct {
	runner  Runner
	workers int
}

const (
	// defaultTimeout is how long a script may run that says nothing else.
	defaultTimeout = 3 * time.Second
	// spare is what a call may take longer than its script: a process may have to be started.
	spare = 10 * time.Second
)

// New returns a checker over a runner of so many processes.
func New(runner Runner, workers int) *Checker { return &Checker{runner, workers} }

// Kind returns the kind of checks that a poller makes with the checker: as many at once as there are processes.
func (c *Checker) Kind() poller.Kind {
	return poller.Kind{
		Name: "script", Types: []model.ItemType{model.Script}, Checker: c, MaxInFlight: c.workers, MaxPerHost: max(1, c.workers/2), Timeout: defaultTimeout + spare,
	}
}

// Check implements poller.Checker.
func (c *Checker) Check(_ context.Context, tasks []*poller.Task, results []poller.Result) {
	for i, t := range tasks {
		value, err := c.check(t)
		switch {
		case err != nil:
			results[i] = poller.Result{Outcome: poller.NotSupported, Text: []byte(err.Error())}
		case value == nil:
			results[i] = poller.Result{Outcome: poller.Nothing}
		default:
			results[i] = poller.Result{Outcome: poller.Value, Text: value}
		}
	}
}

func (c *Checker) check(t *poller.Task) ([]byte, error) {
	if t.Item.Params == "" {
		return nil, errors.New("the script is empty")
	}
	limit := t.Timeout
	if limit <= 0 {
		limit = defaultTimeout
	}
	return c.runner.RunFor(t.Item.Params, parameters(t.Item), limit)
}

// parameters is the object that a script gets, as JSON; of equal names the last counts.
func parameters(item *model.Item) []byte {
	m := map[string]string{}
	if item.Collect != nil {
		for _, p := range item.Collect.Parameters {
			m[p.Name] = p.Value
		}
	}
	text, _ := json.Marshal(m) // texts always have JSON
	return text
}

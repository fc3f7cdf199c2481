package script

import (
	"errors"
	"testing"
	"time"

	"tidemark/collect/poller"
	"tidemark/model"
)

type runner struct {
	source, value string
	timeout       time.Duration
	out           []byte
	err           error
}

func (r *runner) RunFor(source string, value []byte, timeout time.Duration) ([]byte, error) {
	r.source, r.value, r.timeout = source, string(value), timeout
	return r.out, r.err
}

func TestChecker(t *testing.T) {
	f := func(r *runner, item model.Item, timeout time.Duration, want poller.Result) {
		t.Helper()
		results := make([]poller.Result, 1)
		New(r, 2).Check(t.Context(), []*poller.Task{{Item: &item, Timeout: timeout}}, results)
		if results[0].Outcome != want.Outcome || string(results[0].Text) != string(want.Text) {
			t.Errorf("%d %q, want %d %q", results[0].Outcome, results[0].Text, want.Outcome, want.Text)
		}
	}
	item := model.Item{Params: "return 1", Collect: &model.Collect{Parameters: []model.Pair{{Name: "a", Value: "1"}, {Name: "a", Value: "\"2"}, {Name: "b"}}}}
	r := &runner{out: []byte("1")}
	f(r, item, 5*time.Second, poller.Result{Outcome: poller.Value, Text: []byte("1")})
	if r.source != "return 1" || r.value != `{"a":"\"2","b":""}` || r.timeout != 5*time.Second {
		t.Errorf("%+v", r)
	}
	f(r, model.Item{}, 0, poller.Result{Outcome: poller.NotSupported, Text: []byte("the script is empty")})
	f(&runner{}, item, 0, poller.Result{Outcome: poller.Nothing})
	f(&runner{err: errors.New("broken")}, item, 0, poller.Result{Outcome: poller.NotSupported, Text: []byte("broken")})
}

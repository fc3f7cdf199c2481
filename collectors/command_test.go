package collectors

import (
	"context"
	"strings"
	"testing"

	"tidemark/collect/poller"
	"tidemark/model"
)

// agent answers every check alike.
type agent poller.Result

func (a agent) Check(_ context.Context, _ []*poller.Task, results []poller.Result) {
	for i := range results {
		results[i] = poller.Result(a)
	}
}

// What an agent prints, or says instead, is cut: an answer of an agent may be much larger than what a proxy and the server keep of a command.
func TestRunOnAgent_large(t *testing.T) {
	h := &model.Host{ID: 7, Host: "h", Interfaces: []model.Interface{{Type: model.AgentInterface, Main: true, Address: "127.0.0.1", Port: "10050"}}}
	large := []byte(strings.Repeat("é", maxOutputBytes))
	text, err := RunOnAgent(t.Context(), agent{Outcome: poller.Value, Text: large}, h, "cat large")
	if err != nil || len(text) != maxOutputBytes {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if _, err = RunOnAgent(t.Context(), agent{Outcome: poller.NotSupported, Text: large}, h, "cat large"); err == nil || len(err.Error()) > maxOutputBytes+1000 {
		t.Error("the reason is not cut")
	}
}

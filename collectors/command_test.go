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

// A command that an agent ends is told apart from one that it does not run.
func TestRunOnAgent_timeout(t *testing.T) {
	h := &model.Host{ID: 7, Host: "h", Interfaces: []model.Interface{{Type: model.AgentInterface, Main: true, Address: "127.0.0.1", Port: "10050"}}}
	for said, want := range map[string]string{
		"Timeout while executing a shell script.": "took longer than the agent's Timeout; it may have run",
		"Unsupported item key.":                   "must allow system.run",
	} {
		_, err := RunOnAgent(t.Context(), agent{Outcome: poller.NotSupported, Text: []byte(said)}, h, "sleep 10")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", said, err, want)
		}
	}
}

// A command that leaves a child behind, which holds its output, has succeeded.
func TestRunHere_child(t *testing.T) {
	if text, err := RunHere(t.Context(), "echo started; sleep 20 &"); err != nil || text != "started" {
		t.Errorf("%q, %v", text, err)
	}
}

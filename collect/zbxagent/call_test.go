package zbxagent

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"tidemark/collect/poller"
	"tidemark/model"
)

// called makes checks as a poller does, together.
func called(t *testing.T, c *Checker, limit time.Duration, tasks []*poller.Task) []poller.Result {
	t.Helper()
	calls := make([]*poller.Call, len(tasks))
	for i, task := range tasks {
		calls[i] = &poller.Call{Tasks: []*poller.Task{task}, Results: make([]poller.Result, 1), Deadline: time.Now().Add(limit)}
	}
	ended := make(chan *poller.Call, len(calls))
	c.Call(context.Background(), calls, func(list []*poller.Call) {
		for _, call := range list {
			ended <- call
		}
	})
	for range calls {
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("a call does not end")
		}
	}
	results := make([]poller.Result, len(calls))
	for i, call := range calls {
		results[i] = call.Results[0]
	}
	return results
}

// compareCalls makes checks by Call and by Check, each within a limit, and counts the outcomes.
func compareCalls(t *testing.T, c *Checker, limit time.Duration, tasks []*poller.Task, seen map[poller.Outcome]int) {
	t.Helper()
	got := called(t, c, limit, tasks)
	for i, task := range tasks {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		want := make([]poller.Result, 1)
		New(Options{}).Check(ctx, []*poller.Task{task}, want)
		cancel()
		if g, w := fmt.Sprintf("%d %q", got[i].Outcome, got[i].Text), fmt.Sprintf("%d %q", want[0].Outcome, want[0].Text); g != w {
			t.Errorf("%s at %s: %.300s, want %.300s", task.Item.Key, task.Address, g, w)
		}
		seen[got[i].Outcome]++
	}
}

// TestCall compares calls with Check, which is the simple version, for agents of all kinds.
func TestCall(t *testing.T) {
	long := func(body string) []byte {
		if body == "endless" {
			return make([]byte, maxBareBytes+10)
		}
		return framed(string(make([]byte, 100_000)))
	}
	stuck := make(chan struct{})
	agents := map[string]*agent{
		"old": serve(t, nil, old), "new": serve(t, nil, new7), "long": serve(t, nil, long),
		"cut":   serve(t, nil, func(string) []byte { return framed("1")[:10] }),
		"flags": serve(t, nil, func(string) []byte { return []byte("ZBXD\x40rubbish and more of it") }),
		"huge":  serve(t, nil, func(string) []byte { return []byte("ZBXD\x01\xff\xff\xff\x7f\x00\x00\x00\x00") }),
		"stuck": serve(t, nil, func(string) []byte { <-stuck; return nil }),
	}
	t.Cleanup(func() { close(stuck) })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	agents["closed"] = &agent{address: ln.Addr().String()}
	agents["name"] = &agent{address: "localhost" + agents["old"].address[len("127.0.0.1"):]}
	agents["wrong"] = &agent{address: "nowhere"}
	var silent, tasks []*poller.Task
	for name, a := range agents {
		for _, key := range []string{"agent.ping", "zero", "bare", "drop", "other", "refuse", "broken", "endless"} {
			task := &poller.Task{Item: &model.Item{Key: key}, Address: a.address}
			if name == "stuck" {
				silent = append(silent, task)
			} else {
				tasks = append(tasks, task)
			}
		}
	}
	c := New(Options{})
	for range 2 { // Once with agents that are not known yet.
		seen := map[poller.Outcome]int{}
		compareCalls(t, c, 200*time.Millisecond, silent, seen)
		compareCalls(t, c, 30*time.Second, tasks, seen)
		if len(seen) != 4 {
			t.Errorf("outcomes %v, want all four", seen)
		}
	}
}

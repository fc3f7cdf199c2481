package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/model"
	"tidemark/wire/zbx"
)

// taskProxy opens a proxy that knows host 7, whose agent is not there, and runs nothing.
func taskProxy(t *testing.T, o Options) *Proxy {
	t.Helper()
	f := startFake(t, testConfig(t))
	if o.Server == "" {
		o.Server = f.address
	}
	o.Data, o.Name = t.TempDir(), "branch"
	p, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := p.useConfiguration(t.Context(), testConfig(t, &model.Item{ID: 9, HostID: 7, Type: model.SimpleCheck, Key: "net.tcp.service[tcp,127.0.0.1,1]", ValueType: model.Uint, Delay: "1h"})); err != nil {
		t.Fatal(err)
	}
	return p
}

// Commands run where the server says, if the proxy permits it and they come in time; what becomes of them waits for the server.
func TestTasks_commands(t *testing.T) {
	p := taskProxy(t, Options{})
	tasks := p.sender.tasks
	var mu sync.Mutex
	var ran []string
	tasks.runHere = func(_ context.Context, command string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		ran = append(ran, command)
		if command == "bad" {
			return "", errors.New("exit status 1")
		}
		return "printed", nil
	}
	now := time.Now().Unix()
	number := uint64(0)
	result := func(task zbx.Task) zbx.Task {
		t.Helper()
		number++
		task.Type, task.ID, task.TTL = zbx.TaskCommand, number, time.Minute
		if task.At == 0 {
			task.At = now
		}
		tasks.run(t.Context(), &task)
		list := tasks.waiting()
		if len(list) != 1 || list[0].ID != number || list[0].Type != zbx.TaskCommandResult {
			t.Fatalf("results: %+v", list)
		}
		tasks.told(1)
		return list[0]
	}
	is := func(task zbx.Task, failed bool, want string) {
		t.Helper()
		if r := result(task); r.Failed != failed || !strings.Contains(r.Info, want) {
			t.Errorf("%+v: %+v, want %q", task, r, want)
		}
	}
	is(zbx.Task{Host: 7, On: zbx.OnProxy, Command: "x"}, true, "proxy.remote_commands")
	tasks.here = true
	is(zbx.Task{Host: 7, On: zbx.OnProxy, Command: "x"}, false, "printed")
	is(zbx.Task{Host: 7, On: zbx.OnProxy, Command: "bad"}, true, "exit status 1")
	is(zbx.Task{Host: 8, On: zbx.OnProxy, Command: "x"}, true, "does not know the host")
	is(zbx.Task{Host: 7, On: zbx.OnProxy, Kind: 2, Command: "x"}, true, "of type script only")
	is(zbx.Task{Host: 7, On: zbx.OnProxy, Command: "x", At: now - 3600}, true, "too late")
	is(zbx.Task{Host: 7, On: zbx.OnAgent, Command: "x"}, true, "no interface of type agent")
	if fmt.Sprint(ran) != "[x bad]" {
		t.Errorf("run here: %q", ran)
	}
}

// What a server asks for is bounded, and what it asks for and cannot have is answered.
func TestTasks_take(t *testing.T) {
	p := taskProxy(t, Options{})
	tasks := p.sender.tasks
	text := func(list ...zbx.Task) []byte {
		b := zbx.AppendTasks(zbx.AppendSuccess(nil, ""), list)
		a, err := zbx.DecodeAnswer(b)
		if err != nil {
			t.Fatal(err)
		}
		return a.Tasks
	}
	tasks.take(nil)
	tasks.take([]byte(`[{"type":[]}]`))
	tasks.take(text(zbx.Task{Type: zbx.TaskCheckNow, Item: 9}, zbx.Task{Type: zbx.TaskCheckNow, Item: 2}, zbx.Task{Type: zbx.TaskCheckNow, Item: 77}))
	if n := tasks.checks.Get(); n != 3 {
		t.Errorf("asked for at once: %d", n)
	}
	tasks.take([]byte(`[{"type":7,"clock":1,"ttl":60,"data_type":0,"parent_taskid":5,"data":"{}"}]`))
	if list := tasks.waiting(); len(list) != 1 || list[0].Type != zbx.TaskDataResult || !list[0].Failed || list[0].ID != 5 {
		t.Errorf("a question about the proxy itself: %+v", list)
	}
	tasks.told(1)
	var many []zbx.Task
	for n := range maxCommands + maxResults + 10 {
		many = append(many, zbx.Task{Type: zbx.TaskCommand, ID: uint64(n), Host: 7, Command: "x"})
	}
	tasks.take(text(many...)) // nobody runs them
	if list := tasks.waiting(); len(list) != sendResults || len(tasks.results) != maxResults || !strings.Contains(list[0].Info, "already") || tasks.dropped.Get() != 10 {
		t.Errorf("%d results of %d at once, %d dropped", len(list), len(tasks.results), tasks.dropped.Get())
	}
}

// A server that asks a passive proxy anew does not wait for what was offered before: its verdict is not waited for, and the same is offered again.
func TestPassive_offer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := taskProxy(t, Options{Server: "127.0.0.1", Passive: true, Trapper: ln})
	if err := p.queue.Append(&model.Batch{}); err != nil {
		t.Fatal(err)
	}
	p.sender.tasks.finish(&zbx.Task{Type: zbx.TaskCommand, ID: 3}, "done", nil)
	// The connection of the first one is lost without a word.
	lost := make(chan struct{})
	first, settle, err := p.passive.Offer(t.Context(), nil, sync.OnceFunc(func() { close(lost) }))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-lost
		_ = settle(nil, errors.New("cut"))
	}()
	second, settle, err := p.passive.Results(t.Context(), nil, func() {})
	if err != nil {
		t.Fatalf("a server that asks anew: %v", err)
	}
	const want = `"tasks":[{"type":3`
	if !strings.Contains(string(first), want) || !strings.Contains(string(second), want) {
		t.Errorf("offered %s, then %s", first, second)
	}
	if err := settle([]byte(`{"response":"success"}`), nil); err != nil {
		t.Error(err)
	}
	third, settle, err := p.passive.Offer(t.Context(), nil, func() {})
	if err != nil || strings.Contains(string(third), "tasks") {
		t.Errorf("after success: %s, %v", third, err)
	}
	if err := settle(nil, errors.New("lost")); err == nil {
		t.Error("a lost verdict is none")
	}
}

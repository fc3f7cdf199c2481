package server

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/model"
	"tidemark/wire/zbx"
)

func TestProxyTasks(t *testing.T) {
	var now atomic.Int64
	now.Store(1_800_000_000)
	tasks := newProxyTasks(metrics.NewSet(), func() time.Time { return time.Unix(now.Load(), 0) })
	check := func(item uint64) zbx.Task { return zbx.Task{Type: zbx.TaskCheckNow, Item: item, TTL: checkNowTTL} }
	add := func(item uint64) {
		t.Helper()
		if err := tasks.add(5, check(item), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	add(1)
	add(1)
	add(2)
	list := tasks.take(5, time.Hour)
	if len(list) != 2 || list[0].At != now.Load()+3600 {
		t.Fatalf("a proxy whose clock is ahead by an hour is given %+v", list)
	}
	if again := tasks.take(5, 0); len(again) != 0 {
		t.Errorf("given twice: %+v", again)
	}
	tasks.untold(5, append(list, zbx.Task{Type: zbx.TaskCommand, ID: 1}))
	if again := tasks.take(5, 0); len(again) != 2 {
		t.Errorf("what did not arrive is given again as %+v, want both checks and no command", again)
	}
	add(3)
	now.Add(int64(checkNowTTL/time.Second) + 1)
	if late := tasks.take(5, time.Hour); len(late) != 0 {
		t.Errorf("given too late: %+v", late)
	}
	for n := range uint64(maxWaitingChecks) {
		add(n)
	}
	if err := tasks.add(5, check(maxWaitingChecks), 0); !errors.Is(err, errManyTasks) {
		t.Errorf("one more than the limit: %v", err)
	}
	if err := tasks.add(6, check(1), 0); err != nil {
		t.Errorf("another proxy: %v", err)
	}
	if got := len(tasks.take(5, 0)); got != giveChecks {
		t.Errorf("given at once: %d", got)
	}
}

func TestProxyTasks_command(t *testing.T) {
	tasks := newProxyTasks(metrics.NewSet(), time.Now)
	// answer has the proxy get a command, and another one say what became of it.
	answer := func(by model.ProxyID, r zbx.Task) {
		for {
			if list := tasks.take(5, 0); len(list) == 1 {
				r.Type, r.ID = zbx.TaskCommandResult, list[0].ID
				tasks.finished(by, []zbx.Task{r, r, {Type: zbx.TaskDataResult, ID: r.ID}})
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	go answer(5, zbx.Task{Info: "done"})
	if text, err := tasks.command(t.Context(), 5, zbx.Task{Command: "x"}, 0); err != nil || text != "done" {
		t.Errorf("%q, %v", text, err)
	}
	go answer(5, zbx.Task{Failed: true, Info: "not enabled"})
	if text, err := tasks.command(t.Context(), 5, zbx.Task{Command: "x"}, 0); err == nil || err.Error() != "not enabled" {
		t.Errorf("%q, %v", text, err)
	}
	tasks.wait = 50 * time.Millisecond
	if _, err := tasks.command(t.Context(), 5, zbx.Task{Command: "x"}, 0); err == nil || !strings.Contains(err.Error(), "was not run") {
		t.Errorf("a proxy that does not ask: %v", err)
	}
	if list := tasks.take(5, 0); len(list) != 0 {
		t.Errorf("a command that nobody waits for is given: %+v", list)
	}
	tasks.wait = time.Second
	go answer(6, zbx.Task{Info: "of another proxy"})
	if text, err := tasks.command(t.Context(), 5, zbx.Task{Command: "x"}, 0); err == nil || !strings.Contains(err.Error(), "may have run") {
		t.Errorf("the result of another proxy: %q, %v", text, err)
	}
	for range maxWaitingCommands {
		if err := tasks.add(5, zbx.Task{Type: zbx.TaskCommand, TTL: commandTTL}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tasks.command(t.Context(), 5, zbx.Task{Command: "x"}, 0); !errors.Is(err, errManyTasks) || len(tasks.results) != 0 {
		t.Errorf("more commands than the limit: %v", err)
	}
	if got := len(tasks.take(5, 0)); got != giveCommands {
		t.Errorf("commands given at once: %d", got)
	}
}

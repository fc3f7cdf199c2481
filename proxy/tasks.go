package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/collect/poller"
	"tidemark/collectors"
	"tidemark/confcache"
	"tidemark/model"
	"tidemark/wire/zbx"
)

const (
	// maxDependence bounds how many master items are looked at above an item; Zabbix has 3.
	maxDependence = 8
	// maxTasks bounds the tasks of one answer of the server.
	maxTasks = 10_000
	// maxCommands bounds the commands that wait, commandsAtOnce those that run.
	maxCommands    = 100
	commandsAtOnce = 4
	// maxResults bounds the results that wait for the server, sendResults and sendResultBytes those of one request.
	maxResults      = 1000
	sendResults     = 100
	sendResultBytes = 1 << 20
)

// tasks does what the server asks for besides the configuration: values at once, and commands. What becomes of commands waits in memory for the
// server; a proxy that ends forgets it.
type tasks struct {
	cache  *confcache.Cache
	poller *poller.Poller
	agents poller.Checker
	// here permits commands on this machine.
	here   bool
	logger *slog.Logger
	// runHere runs a command on this machine.
	runHere func(ctx context.Context, command string) (string, error)

	commands chan zbx.Task

	mu      sync.Mutex
	results []zbx.Task

	checks, ran, failed, dropped *metrics.Counter
}

func newTasks(p *Proxy, agents poller.Checker) *tasks {
	return &tasks{
		cache: p.cache, poller: p.poller, agents: agents, here: p.o.RemoteCommands, logger: p.logger, runHere: collectors.RunHere, commands: make(chan zbx.Task, maxCommands),
		checks: p.metrics.NewCounter("tidemark_proxy_checks_now_total"), ran: p.metrics.NewCounter("tidemark_proxy_commands_total"),
		failed: p.metrics.NewCounter("tidemark_proxy_failed_commands_total"), dropped: p.metrics.NewCounter("tidemark_proxy_dropped_results_total"),
	}
}

// Run runs commands until ctx ends.
func (t *tasks) Run(ctx context.Context) error {
	var work sync.WaitGroup
	defer work.Wait()
	for range commandsAtOnce {
		work.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case task := <-t.commands:
					t.run(ctx, &task)
				}
			}
		})
	}
	return nil
}

// take takes the tasks that an answer of the server brought, as JSON text. It does not wait for them.
func (t *tasks) take(text []byte) {
	list, err := zbx.DecodeTasks(text, maxTasks)
	if err != nil {
		t.logger.Warn("the tasks that the server gave cannot be read", "error", err)
		return
	}
	now := time.Now().Unix()
	for i := range list {
		task := &list[i]
		switch task.Type {
		case zbx.TaskCheckNow:
			if !task.Expired(now) {
				t.checkNow(model.ItemID(task.Item))
			}
		case zbx.TaskCommand:
			select {
			case t.commands <- *task:
			default:
				t.finish(task, "", fmt.Errorf("the proxy has %d commands to run already", maxCommands))
			}
		case zbx.TaskData:
			t.finish(task, "", errors.New("tidemark proxy does not do this; look at its page, /metrics and /api/state"))
		}
	}
}

// checkNow asks for an item at once; a dependent one is had by asking for what it is made of.
func (t *tasks) checkNow(id model.ItemID) {
	s := t.cache.Snapshot()
	for range maxDependence {
		item, ok := s.Item(id)
		if !ok || item.Type != model.Dependent {
			break
		}
		id = item.MasterID
	}
	t.checks.Inc()
	if err := t.poller.CheckNow(id); err != nil {
		t.logger.Info("an item cannot be asked for at once", "item_id", uint64(id), "error", err)
	}
}

// run runs a command, unless its time is over.
func (t *tasks) run(ctx context.Context, task *zbx.Task) {
	h, ok := t.cache.Snapshot().HostByID(model.HostID(task.Host))
	var text string
	var err error
	switch {
	case task.Expired(time.Now().Unix()):
		err = errors.New("the command came too late to the proxy and was not run")
	case !ok:
		err = errors.New("the proxy does not know the host")
	case task.Kind != zbx.ScriptCommand:
		err = errors.New("tidemark proxy runs commands of type script only")
	case task.On == zbx.OnProxy && !t.here:
		err = errors.New("the proxy runs no commands itself; its setting proxy.remote_commands permits them")
	case task.On == zbx.OnProxy:
		t.logger.Warn("the server has a command run on this machine", "command", task.Command, "host", h.Host)
		text, err = t.runHere(ctx, task.Command)
	default:
		text, err = collectors.RunOnAgent(ctx, t.agents, h, task.Command)
	}
	t.finish(task, text, err)
}

// finish keeps what became of a task for the server.
func (t *tasks) finish(task *zbx.Task, text string, err error) {
	r := zbx.Task{Type: zbx.TaskCommandResult, At: time.Now().Unix(), ID: task.ID, Info: text}
	if task.Type == zbx.TaskData {
		r.Type = zbx.TaskDataResult
	} else {
		t.ran.Inc()
	}
	if err != nil {
		t.failed.Inc()
		r.Failed, r.Info = true, err.Error()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.results) == maxResults {
		t.dropped.Inc()
		return
	}
	t.results = append(t.results, r)
}

// waiting are the first results for the server.
func (t *tasks) waiting() []zbx.Task {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, size := 0, 0
	for n < min(len(t.results), sendResults) && (n == 0 || size+len(t.results[n].Info) <= sendResultBytes) {
		size += len(t.results[n].Info)
		n++
	}
	return t.results[:n:n]
}

// told drops the first results, which the server has.
func (t *tasks) told(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.results = t.results[n:]; len(t.results) == 0 {
		t.results = nil
	}
}

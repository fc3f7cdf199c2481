package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/model"
	"tidemark/wire/proxyconfig"
	"tidemark/wire/zbx"
)

const (
	// maxWaitingChecks and maxWaitingCommands bound what waits for one proxy, giveChecks and giveCommands what it is given with one answer.
	maxWaitingChecks   = 10_000
	maxWaitingCommands = 100
	giveChecks         = 1000
	giveCommands       = 4
	// checkNowTTL and commandTTL are how long a task is good for, from when it was asked for until it is begun.
	checkNowTTL = 10 * time.Minute
	commandTTL  = 20 * time.Second
	// commandWait is how long the result of a command is waited for: until it must have begun, and its longest run.
	commandWait = 52 * time.Second
)

// errManyTasks says that a proxy has too much to do.
var errManyTasks = errors.New("too much waits for the proxy already; try again when it has worked on that")

// proxyTasks are the tasks that wait for proxies, and who waits for their results. They are kept in memory: after a restart of the server people ask
// again. Its methods are called from many goroutines.
type proxyTasks struct {
	now func() time.Time
	// wait is how long the result of a command is waited for.
	wait time.Duration

	mu      sync.Mutex
	next    uint64
	waiting map[model.ProxyID][]zbx.Task
	results map[uint64]*awaited

	given, expired, strange *metrics.Counter
}

// awaited is a command whose result somebody waits for.
type awaited struct {
	proxy  model.ProxyID
	result chan zbx.Task
}

func newProxyTasks(set *metrics.Set, now func() time.Time) *proxyTasks {
	return &proxyTasks{
		now: now, wait: commandWait, next: uint64(now().UnixMicro()), waiting: map[model.ProxyID][]zbx.Task{}, results: map[uint64]*awaited{},
		given: set.NewCounter("tidemark_proxies_tasks_total"), expired: set.NewCounter("tidemark_proxies_expired_tasks_total"), strange: set.NewCounter("tidemark_proxies_strange_results_total"),
	}
}

// add has a task wait for a proxy. ahead is by how much the proxy's clock is: it tells by its own clock when the task is void.
func (t *proxyTasks) add(id model.ProxyID, task zbx.Task, ahead time.Duration) error {
	task.At = t.now().Add(ahead).Unix()
	t.mu.Lock()
	defer t.mu.Unlock()
	limit, count := maxWaitingCommands, 0
	if task.Type == zbx.TaskCheckNow {
		limit = maxWaitingChecks
	}
	for i := range t.waiting[id] {
		other := &t.waiting[id][i]
		if other.Type != task.Type {
			continue
		}
		if count++; task.Type == zbx.TaskCheckNow && other.Item == task.Item {
			return nil
		}
	}
	if count >= limit {
		return errManyTasks
	}
	t.waiting[id] = append(t.waiting[id], task)
	return nil
}

// take takes the tasks that a proxy is to be given now. ahead is by how much its clock is.
func (t *proxyTasks) take(id model.ProxyID, ahead time.Duration) []zbx.Task {
	now := t.now().Add(ahead).Unix()
	t.mu.Lock()
	defer t.mu.Unlock()
	var list, kept []zbx.Task
	checks, commands := giveChecks, giveCommands
	for _, task := range t.waiting[id] {
		room := &checks
		if task.Type == zbx.TaskCommand {
			room = &commands
		}
		switch {
		case task.Expired(now):
			t.expired.Inc()
		case *room == 0:
			kept = append(kept, task)
		default:
			*room--
			list = append(list, task)
		}
	}
	if t.waiting[id] = kept; kept == nil {
		delete(t.waiting, id)
	}
	t.given.Add(len(list))
	return list
}

// untold takes back what did not reach a proxy. A command is not given twice, because it may have arrived after all.
func (t *proxyTasks) untold(id model.ProxyID, list []zbx.Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, task := range list {
		if task.Type == zbx.TaskCheckNow && len(t.waiting[id]) < maxWaitingChecks {
			t.waiting[id] = append(t.waiting[id], task)
		}
	}
}

// forget drops a command that nobody waits for any more, and reports whether the proxy was not given it.
func (t *proxyTasks) forget(id model.ProxyID, number uint64) (waited bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.results, number)
	before := len(t.waiting[id])
	t.waiting[id] = slices.DeleteFunc(t.waiting[id], func(task zbx.Task) bool { return task.Type == zbx.TaskCommand && task.ID == number })
	left := len(t.waiting[id])
	if left == 0 {
		delete(t.waiting, id)
	}
	return left < before
}

// finished takes what became of tasks. A result that nobody waits for, or that another proxy was asked for, is counted.
func (t *proxyTasks) finished(id model.ProxyID, list []zbx.Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, task := range list {
		who := t.results[task.ID]
		if who == nil || who.proxy != id || task.Type != zbx.TaskCommandResult {
			t.strange.Inc()
			continue
		}
		delete(t.results, task.ID)
		who.result <- task
	}
}

// command has a proxy run a command and waits for the result.
func (t *proxyTasks) command(ctx context.Context, id model.ProxyID, task zbx.Task, ahead time.Duration) (string, error) {
	who := &awaited{proxy: id, result: make(chan zbx.Task, 1)}
	task.Type, task.TTL = zbx.TaskCommand, commandTTL
	t.mu.Lock()
	t.next++
	task.ID = t.next
	t.results[task.ID] = who
	t.mu.Unlock()
	if err := t.add(id, task, ahead); err != nil {
		t.forget(id, task.ID)
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, t.wait)
	defer cancel()
	select {
	case r := <-who.result:
		if r.Failed {
			return "", errors.New(r.Info)
		}
		return r.Info, nil
	case <-ctx.Done():
	}
	if t.forget(id, task.ID) {
		return "", errors.New("the proxy did not ask for the command; it was not run")
	}
	return "", fmt.Errorf("the proxy was given the command and did not say within %s what became of it; it may have run", t.wait)
}

// reach returns by how much the clock of a proxy is ahead. The error says why it cannot be given tasks.
func (p *proxies) reach(id model.ProxyID) (ahead time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.byID[id]
	switch {
	case s == nil:
		return 0, errors.New("the proxy is not known any more")
	case time.Since(time.Unix(0, s.seenAt)) > 2*proxyQuiet:
		return 0, fmt.Errorf("nothing is heard of proxy %s now; ask again when 'tidemark proxies list' shows it", s.Name)
	case versionLine(s.contact.Version) != proxyconfig.Version:
		return 0, fmt.Errorf("proxy %s is of version %s and can be given nothing to do; only the line %s can", s.Name, versionLine(s.contact.Version), proxyconfig.Version)
	}
	return time.Duration(s.contact.AheadNanos), nil
}

// checkNow has a proxy ask for an item at once.
func (p *proxies) checkNow(id model.ProxyID, item model.ItemID) error {
	ahead, err := p.reach(id)
	if err != nil {
		return err
	}
	return p.tasks.add(id, zbx.Task{Type: zbx.TaskCheckNow, Item: uint64(item), TTL: checkNowTTL}, ahead)
}

// command has a proxy run a command: itself, or by the agent of a host.
func (p *proxies) command(ctx context.Context, h *model.Host, on int, command string) (string, error) {
	ahead, err := p.reach(h.Proxy)
	if err != nil {
		return "", err
	}
	return p.tasks.command(ctx, h.Proxy, zbx.Task{Host: uint64(h.ID), On: on, Kind: zbx.ScriptCommand, Command: command}, ahead)
}

// Tasks implements trapper.Proxies.
func (p *proxies) Tasks(id model.ProxyID) []zbx.Task {
	p.mu.Lock()
	s := p.byID[id]
	var ahead time.Duration
	if s != nil {
		ahead = time.Duration(s.contact.AheadNanos)
	}
	p.mu.Unlock()
	if s == nil {
		return nil
	}
	return p.tasks.take(id, ahead)
}

// Untold implements trapper.Proxies.
func (p *proxies) Untold(id model.ProxyID, list []zbx.Task) { p.tasks.untold(id, list) }

// Results implements trapper.Proxies.
func (p *proxies) Results(id model.ProxyID, list []zbx.Task) { p.tasks.finished(id, list) }

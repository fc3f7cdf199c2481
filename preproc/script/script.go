// Package script runs JavaScript of preprocessing steps and webhooks in processes of their own, so that a script can take neither
// more time nor more memory than it may, and cannot bring the server down.
//
// A Runner is the side of the server: it starts a few worker processes when they are needed, gives each one script at a time, and
// kills one that does not answer in time. Serve is the other side: what such a process runs. A script gets a fresh interpreter each
// time; compiled programs are kept.
//
// Source of the functions that scripts may call: Zabbix documentation, "JavaScript objects".
package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/internal/guard"
)

// The defaults of Options.
const (
	DefaultWorkers     = 2
	DefaultTimeout     = 10 * time.Second
	DefaultMemoryBytes = 512 << 20
	DefaultOutputBytes = 16 << 20
)

// Options of a Runner. Command is needed.
type Options struct {
	// Command is the program of a worker with its arguments; it must call Serve on its standard input and output. It gets an empty
	// environment but for MemoryVariable and RulesVariable.
	Command []string
	// Workers is how many processes there are at most; zero is DefaultWorkers.
	Workers int
	// Timeout is how long one script may run; zero is DefaultTimeout.
	Timeout time.Duration
	// MemoryBytes is what one process may use; zero is DefaultMemoryBytes.
	MemoryBytes int64
	// OutputBytes is what one script may yield; zero is DefaultOutputBytes.
	OutputBytes int
	// Rules say what requests of scripts must not reach; the zero value allows everything.
	Rules guard.Options
	// Environment is added to the worker's, for tests.
	Environment []string
	// Metrics may be nil.
	Metrics *metrics.Set
}

func (o Options) withDefaults() Options {
	if o.Workers <= 0 {
		o.Workers = DefaultWorkers
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MemoryBytes <= 0 {
		o.MemoryBytes = DefaultMemoryBytes
	}
	if o.OutputBytes <= 0 {
		o.OutputBytes = DefaultOutputBytes
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	return o
}

// Errors of Run.
var (
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("scripts are not run any more: the server stops")
	// ErrTimeout means that a script ran too long.
	ErrTimeout = errors.New("the script ran longer than allowed")
	// ErrDied means that the process ended while the script ran; nearly always it used too much memory.
	ErrDied = errors.New("the script used more memory than allowed")
)

// Runner runs scripts. Its methods may be called by several goroutines.
type Runner struct {
	o Options
	// free holds a token for each process that may be started or used; idle workers wait in idle.
	free   chan struct{}
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	idle []*worker
	all  map[*worker]struct{}

	runs, failures, kills *metrics.Counter
	busy                  *metrics.FloatCounter
}

// New returns a Runner that has started no process yet.
func New(o Options) *Runner {
	o = o.withDefaults()
	r := &Runner{
		o: o, free: make(chan struct{}, o.Workers), closed: make(chan struct{}), all: make(map[*worker]struct{}),
		runs:     o.Metrics.NewCounter("tidemark_script_runs_total"),
		failures: o.Metrics.NewCounter("tidemark_script_failed_runs_total"),
		kills:    o.Metrics.NewCounter("tidemark_script_killed_processes_total"),
		busy:     o.Metrics.NewFloatCounter("tidemark_script_busy_seconds_total"),
	}
	for range o.Workers {
		r.free <- struct{}{}
	}
	o.Metrics.NewGauge("tidemark_script_processes", func() float64 {
		r.mu.Lock()
		defer r.mu.Unlock()
		return float64(len(r.all))
	})
	return r
}

// Run runs a script, whose source is the body of a function of one argument, value. It returns the text of what the script returns;
// nil without an error when that is null. It waits for a free process.
func (r *Runner) Run(source string, value []byte) ([]byte, error) {
	return r.RunFor(source, value, r.o.Timeout)
}

// RunFor is Run with another time limit.
func (r *Runner) RunFor(source string, value []byte, timeout time.Duration) ([]byte, error) {
	select {
	case <-r.closed:
		return nil, ErrClosed
	case <-r.free:
	}
	defer func() { r.free <- struct{}{} }()
	start := time.Now()
	defer func() { r.busy.Add(time.Since(start).Seconds()) }()
	r.runs.Inc()
	out, err := r.run(source, value, timeout)
	if err != nil {
		r.failures.Inc()
	}
	return out, err
}

func (r *Runner) run(source string, value []byte, timeout time.Duration) ([]byte, error) {
	if len(source) > maxFrameBytes || len(value) > maxFrameBytes {
		return nil, fmt.Errorf("script and value have more than %d bytes", maxFrameBytes)
	}
	w, err := r.worker()
	if err != nil {
		return nil, err
	}
	kind, text, err := w.ask(request{uint32(timeout.Milliseconds()), []byte(source), value}, timeout+grace, r.o.OutputBytes)
	if err != nil || w.uses >= maxUses {
		r.end(w)
	} else {
		r.mu.Lock()
		r.idle = append(r.idle, w)
		r.mu.Unlock()
	}
	switch {
	case err != nil:
		r.kills.Inc()
		return nil, err
	case kind == answerNothing:
		return nil, nil
	case kind == answerError:
		return nil, errors.New(string(text))
	}
	return text, nil
}

const (
	// grace is how much later than the worker itself the server stops a script.
	grace = time.Second
	// maxUses is how many scripts one process runs; what leaks goes with it.
	maxUses = 10_000
)

// worker is one process. It serves one goroutine at a time.
type worker struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     io.ReadCloser
	stderr  *tail
	uses    int
}

// worker returns an idle process or starts one.
func (r *Runner) worker() (*worker, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.closed:
		return nil, ErrClosed
	default:
	}
	if n := len(r.idle); n > 0 {
		w := r.idle[n-1]
		r.idle = r.idle[:n-1]
		return w, nil
	}
	if len(r.o.Command) == 0 {
		return nil, errors.New("scripts are switched off on this server")
	}
	c := exec.Command(r.o.Command[0], r.o.Command[1:]...)
	rules, err := json.Marshal(r.o.Rules)
	if err != nil {
		return nil, fmt.Errorf("start a process for scripts: %w", err)
	}
	c.Env = append([]string{fmt.Sprintf("%s=%d", MemoryVariable, r.o.MemoryBytes), RulesVariable + "=" + string(rules)}, r.o.Environment...)
	c.Dir = "/"
	isolate(c)
	w := &worker{command: c, stderr: &tail{}}
	c.Stderr = w.stderr
	if w.in, err = c.StdinPipe(); err == nil {
		w.out, err = c.StdoutPipe()
	}
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start a process for scripts: %w", err)
	}
	r.all[w] = struct{}{}
	return w, nil
}

// ask sends a script and waits for its answer. After an error the process cannot be used any more.
func (w *worker) ask(q request, timeout time.Duration, outputBytes int) (kind byte, text []byte, err error) {
	w.uses++
	late := false
	var mu sync.Mutex
	timer := time.AfterFunc(timeout, func() {
		mu.Lock()
		late = true
		mu.Unlock()
		_ = w.command.Process.Kill()
	})
	defer timer.Stop()
	if err = writeRequest(w.in, q); err == nil {
		kind, text, err = readAnswer(w.out, outputBytes+1024)
	}
	mu.Lock()
	defer mu.Unlock()
	switch {
	case late:
		return 0, nil, ErrTimeout
	case err == nil && len(text) > outputBytes:
		return answerError, []byte(fmt.Sprintf("the script yields more than %d bytes", outputBytes)), nil
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return 0, nil, ErrDied
	case err != nil:
		return 0, nil, fmt.Errorf("the process for scripts failed: %w", err)
	}
	return kind, text, nil
}

// end kills a process and waits for its end.
func (r *Runner) end(w *worker) {
	_ = w.command.Process.Kill()
	_ = w.in.Close()
	_ = w.command.Wait()
	r.mu.Lock()
	delete(r.all, w)
	r.mu.Unlock()
}

// Close waits for the scripts under way and ends all processes. A second call does nothing.
func (r *Runner) Close() error {
	r.once.Do(func() {
		close(r.closed)
		for range r.o.Workers {
			<-r.free
		}
		r.mu.Lock()
		idle := r.idle
		r.idle = nil
		r.mu.Unlock()
		for _, w := range idle {
			r.end(w)
		}
		// Later calls of Run find the door closed, not a lock.
		for range r.o.Workers {
			r.free <- struct{}{}
		}
	})
	return nil
}

// Check runs a script that returns 1, to see at start that processes work.
func (r *Runner) Check() error {
	out, err := r.Run("return 1;", nil)
	if err == nil && !bytes.Equal(out, []byte("1")) {
		err = fmt.Errorf("expected 1, found %q", out)
	}
	return err
}

// tail keeps the end of what a process writes to its standard error.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	const most = 4096
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if n := len(t.text) - most; n > 0 {
		t.text = append(t.text[:0], t.text[n:]...)
	}
	return len(p), nil
}

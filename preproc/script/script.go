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
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
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
	// environment but for MemoryVariable, RulesVariable, and the variables that say which certificates are trusted.
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
	// Metrics may be nil. Use, if not empty, is their label use, for a second runner of one process.
	Metrics *metrics.Set
	Use     string
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
	label := ""
	if o.Use != "" {
		label = fmt.Sprintf("{use=%q}", o.Use)
	}
	r := &Runner{
		o: o, free: make(chan struct{}, o.Workers), closed: make(chan struct{}), all: make(map[*worker]struct{}),
		runs:     o.Metrics.NewCounter("tidemark_script_runs_total" + label),
		failures: o.Metrics.NewCounter("tidemark_script_failed_runs_total" + label),
		kills:    o.Metrics.NewCounter("tidemark_script_killed_processes_total" + label),
		busy:     o.Metrics.NewFloatCounter("tidemark_script_busy_seconds_total" + label),
	}
	for range o.Workers {
		r.free <- struct{}{}
	}
	o.Metrics.NewGauge("tidemark_script_processes"+label, func() float64 {
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
	out, err := r.Do(context.Background(), Job{Source: source, Value: value, Timeout: timeout})
	return out.Value, err
}

// Job is one script and what it may do.
type Job struct {
	// Source is the body of a function of one argument, value; Value is that argument.
	Source string
	Value  []byte
	// Timeout is how long the script may run; zero is that of the runner.
	Timeout time.Duration
	// Webhook keeps requests to public addresses and those of Allow, besides the runner's rules, and takes a script that returns nothing for one
	// that went well.
	Webhook bool
	Allow   []netip.Prefix
}

// Result is what came of a script.
type Result struct {
	// Value is the text of what the script returned; nil when that is null.
	Value []byte
	// Log is what it wrote to the log, its first maxLogBytes; only webhooks have one.
	Log string
}

// Do runs a script. It waits for a free process; when ctx ends it kills the script.
func (r *Runner) Do(ctx context.Context, j Job) (Result, error) {
	if j.Timeout <= 0 {
		j.Timeout = r.o.Timeout
	}
	select {
	case <-r.closed:
		return Result{}, ErrClosed
	case <-ctx.Done():
		return Result{}, fmt.Errorf("no process for scripts was free: %w", ctx.Err())
	case <-r.free:
	}
	defer func() { r.free <- struct{}{} }()
	start := time.Now()
	defer func() { r.busy.Add(time.Since(start).Seconds()) }()
	r.runs.Inc()
	out, err := r.run(ctx, &j)
	if err != nil {
		r.failures.Inc()
	}
	return out, err
}

func (r *Runner) run(ctx context.Context, j *Job) (Result, error) {
	q := request{timeoutMillis: uint32(j.Timeout.Milliseconds()), source: []byte(j.Source), value: j.Value}
	if len(q.source) > maxFrameBytes || len(q.value) > maxFrameBytes {
		return Result{}, fmt.Errorf("script and value have more than %d bytes", maxFrameBytes)
	}
	if j.Webhook {
		var err error
		if q.options, err = json.Marshal(options{Webhook: true, Allow: j.Allow}); err != nil || len(q.options) > maxOptionBytes {
			return Result{}, fmt.Errorf("%d allowed networks cannot be handed on: %w", len(j.Allow), err)
		}
	}
	w, err := r.worker()
	if err != nil {
		return Result{}, err
	}
	a, err := w.ask(ctx, q, j.Timeout+grace, r.o.OutputBytes)
	if err != nil || w.uses >= maxUses {
		r.end(w)
	} else {
		r.mu.Lock()
		r.idle = append(r.idle, w)
		r.mu.Unlock()
	}
	out := Result{Log: string(a.log)}
	switch {
	case err != nil:
		r.kills.Inc()
		return out, err
	case a.kind == answerNothing:
		return out, nil
	case a.kind == answerError:
		return out, errors.New(string(a.text))
	}
	out.Value = a.text
	return out, nil
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
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR"} { // whom to trust is the administrator's choice, as for the server itself
		if v := os.Getenv(name); v != "" {
			c.Env = append(c.Env, name+"="+v)
		}
	}
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

// ask sends a script and waits for its answer, at most so long and not longer than ctx. After an error the process cannot be used any more.
func (w *worker) ask(ctx context.Context, q request, timeout time.Duration, outputBytes int) (a answer, err error) {
	w.uses++
	late := false
	var mu sync.Mutex
	kill := func() {
		mu.Lock()
		late = true
		mu.Unlock()
		_ = w.command.Process.Kill()
	}
	timer := time.AfterFunc(timeout, kill)
	defer timer.Stop()
	defer context.AfterFunc(ctx, kill)()
	if err = writeRequest(w.in, q); err == nil {
		a, err = readAnswer(w.out, outputBytes+1024)
	}
	mu.Lock()
	defer mu.Unlock()
	switch {
	case late:
		return answer{}, ErrTimeout
	case err == nil && len(a.text) > outputBytes:
		return answer{kind: answerError, text: fmt.Appendf(nil, "the script yields more than %d bytes", outputBytes), log: a.log}, nil
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return answer{}, ErrDied
	case err != nil:
		return answer{}, fmt.Errorf("the process for scripts failed: %w", err)
	}
	return a, nil
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

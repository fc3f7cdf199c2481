package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"time"

	"github.com/dop251/goja"

	"tidemark/internal/guard"
)

// MemoryVariable is the environment variable that tells a worker how many bytes it may use.
const MemoryVariable = "TIDEMARK_SCRIPT_MEMORY"

// RulesVariable is the environment variable that tells a worker what requests must not reach: guard.Options as JSON.
const RulesVariable = "TIDEMARK_SCRIPT_RULES"

const (
	// maxPrograms bounds the compiled scripts that a worker keeps.
	maxPrograms = 1000
	// maxCalls is how deep functions may call each other.
	maxCalls = 1000
	// watchEvery is how often a worker looks at its memory.
	watchEvery = 20 * time.Millisecond
	// spareBytes is what the process needs besides the heap that scripts may fill.
	spareBytes = 64 << 20
)

// Serve runs scripts that come in on r and answers on w until r ends. It is all that a worker process does.
func Serve(r io.Reader, w io.Writer) error {
	limit := int64(DefaultMemoryBytes)
	if n, err := strconv.ParseInt(os.Getenv(MemoryVariable), 10, 64); err == nil && n > 0 {
		limit = n
	}
	var rules guard.Options
	if text := os.Getenv(RulesVariable); text != "" {
		if err := json.Unmarshal([]byte(text), &rules); err != nil {
			return fmt.Errorf("%s: %w", RulesVariable, err)
		}
	}
	debug.SetMemoryLimit(limit)
	limitMemory(uint64(limit) + spareBytes)
	e := &engine{limitBytes: uint64(limit), rules: guard.New(rules), programs: make(map[string]*goja.Program)}
	for {
		q, err := readRequest(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := writeAnswer(w, e.run(q)); err != nil {
			return err
		}
	}
}

// engine runs scripts one after another.
type engine struct {
	limitBytes uint64
	rules      *guard.Rules
	programs   map[string]*goja.Program
}

// program returns a compiled script.
func (e *engine) program(source string) (*goja.Program, error) {
	if p := e.programs[source]; p != nil {
		return p, nil
	}
	p, err := goja.Compile("script", "(function(value){"+source+"\n})", false)
	if err != nil {
		return nil, err
	}
	if len(e.programs) >= maxPrograms {
		clear(e.programs)
	}
	e.programs[source] = p
	return p, nil
}

// options is what a request says besides the script, as JSON.
type options struct {
	Webhook bool           `json:"webhook,omitempty"`
	Allow   []netip.Prefix `json:"allow,omitempty"`
}

// run runs one script in an interpreter of its own.
func (e *engine) run(q request) answer {
	fail := func(err error) answer { return answer{kind: answerError, text: []byte(err.Error())} }
	var o options
	if len(q.options) > 0 {
		if err := json.Unmarshal(q.options, &o); err != nil {
			return fail(fmt.Errorf("options of the script: %w", err))
		}
	}
	program, err := e.program(string(q.source))
	if err != nil {
		return fail(err)
	}
	vm := goja.New()
	vm.SetMaxCallStackSize(maxCalls)
	timeout := time.Duration(q.timeoutMillis) * time.Millisecond
	s := &session{vm: vm, deadline: time.Now().Add(timeout), rules: e.rules, options: o}
	s.define()
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		e.watch(vm, timeout, done)
	}()
	result, err := call(vm, program, string(q.value))
	close(done)
	<-watched
	a := answer{kind: answerNothing}
	switch {
	case err != nil:
		a = fail(readable(err))
	case goja.IsNull(result) || goja.IsUndefined(result) && o.Webhook:
	case goja.IsUndefined(result):
		a = fail(errors.New("the script returns nothing; expected a text, a number, a boolean or null"))
	default:
		if out, err := s.text(result); err != nil {
			a = fail(err)
		} else {
			a = answer{kind: answerValue, text: []byte(out)}
		}
	}
	a.log = s.log
	return a
}

// call runs the function that a program is.
func call(vm *goja.Runtime, program *goja.Program, value string) (result goja.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the script broke the interpreter: %v", p)
		}
	}()
	v, err := vm.RunProgram(program)
	if err != nil {
		return nil, err
	}
	function, ok := goja.AssertFunction(v)
	if !ok {
		return nil, errors.New("the script is no body of a function")
	}
	return function(goja.Undefined(), vm.ToValue(value))
}

// watch interrupts a script that runs too long or uses too much memory, until done.
func (e *engine) watch(vm *goja.Runtime, timeout time.Duration, done <-chan struct{}) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for {
		select {
		case <-done:
			return
		case <-timer.C:
			vm.Interrupt(ErrTimeout)
			<-done
			return
		case <-tick.C:
			if metrics.Read(heap); heap[0].Value.Uint64() > e.limitBytes {
				vm.Interrupt(ErrDied)
				<-done
				return
			}
		}
	}
}

// readable is the message of an error without the interpreter's own words.
func readable(err error) error {
	var interrupted *goja.InterruptedError
	if errors.As(err, &interrupted) {
		if cause, ok := interrupted.Value().(error); ok {
			return cause
		}
	}
	var deep *goja.StackOverflowError
	if errors.As(err, &deep) {
		return errors.New("the script has too many calls within calls")
	}
	var thrown *goja.Exception
	if errors.As(err, &thrown) {
		if o, ok := thrown.Value().(*goja.Object); ok {
			if m := o.Get("message"); m != nil && !goja.IsUndefined(m) {
				if own := o.Get("value"); own != nil {
					if _, ok := own.Export().(error); ok {
						return errors.New(m.String()) // of one of our own functions
					}
				}
				return errors.New(o.Get("name").String() + ": " + m.String())
			}
		}
		return errors.New(thrown.Value().String())
	}
	return err
}

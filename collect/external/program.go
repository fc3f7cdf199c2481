package external

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// Program is a program to be run.
type Program struct {
	// Path is the file, Arguments what it is given; Folder is where it runs.
	Path      string
	Arguments []string
	Folder    string
	// LimitBytes bounds what it prints.
	LimitBytes int
	// Cut keeps the first LimitBytes of what it prints; otherwise more is a mistake.
	Cut bool
}

// EndedError says that a program ended with another code than 0.
type EndedError struct{ Err error }

// Error says with which.
func (e *EndedError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the process.
func (e *EndedError) Unwrap() error { return e.Err }

// outputWait is how long the output of a killed program is awaited: a child of it may hold the pipe.
const outputWait = time.Second

// errOutput says that a program printed too much.
var errOutput = errors.New("it prints too much")

// Run runs the program until it ends or ctx does, and returns what it printed on both outputs. When ctx ends it is killed with its children.
func (p *Program) Run(ctx context.Context) ([]byte, error) {
	c := exec.CommandContext(ctx, p.Path, p.Arguments...)
	c.Dir = p.Folder
	// What this process has in its environment may be secret.
	c.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=" + p.Folder}
	out := &output{limit: p.LimitBytes, cut: p.Cut}
	c.Stdout, c.Stderr = out, out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = outputWait
	began := time.Now()
	err := c.Run()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("it was ended after %s: its time is over", time.Since(began).Round(time.Second/10))
	case out.over:
		return nil, fmt.Errorf("%w, more than %d bytes", errOutput, p.LimitBytes)
	case errors.As(err, &ended):
		return out.b.Bytes(), &EndedError{err}
	case errors.Is(err, exec.ErrWaitDelay):
		return out.b.Bytes(), nil // it left a child behind that holds its output
	case err != nil:
		return nil, err
	}
	return out.b.Bytes(), nil
}

// output keeps what is written to it, up to a limit.
type output struct {
	b     bytes.Buffer
	limit int
	cut   bool
	over  bool
}

// Write implements io.Writer.
func (o *output) Write(text []byte) (int, error) {
	room := o.limit - o.b.Len()
	if len(text) > room {
		if !o.cut {
			o.over = true
			return 0, errOutput // the program is told by a closed pipe
		}
		o.b.Write(text[:room])
		return len(text), nil
	}
	o.b.Write(text)
	return len(text), nil
}

package collectors

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	// maxOutputBytes bounds what is kept of what a command prints.
	maxOutputBytes = 512 << 10
	// outputWait is how long the output of a killed command is awaited: a child of it may hold the pipe.
	outputWait = time.Second
)

// RunHere runs a command on this machine by a shell and returns what it printed, on both of its outputs. It is killed with its children after
// CommandTime.
func RunHere(ctx context.Context, command string) (string, error) {
	if err := CheckCommand(command); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, CommandTime)
	defer cancel()
	c := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	c.Dir = "/"
	var out output
	c.Stdout, c.Stderr = &out, &out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = outputWait
	err := c.Run()
	text := strings.TrimRight(strings.ToValidUTF8(out.b.String(), "?"), "\n")
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("the command was ended after %s", CommandTime)
	case err != nil:
		return "", fmt.Errorf("the command failed: %w: %s", err, text)
	}
	return text, nil
}

// output keeps the first bytes of what is written to it.
type output struct{ b bytes.Buffer }

// Write implements io.Writer.
func (o *output) Write(text []byte) (int, error) {
	o.b.Write(text[:min(len(text), maxOutputBytes-o.b.Len())])
	return len(text), nil
}

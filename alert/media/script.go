package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// maxArguments and maxArgumentBytes bound a script's arguments; Linux takes 128 KiB for one.
	maxArguments     = 100
	maxArgumentBytes = 100 << 10
	// killWait is how long the output of a killed script is awaited: a child of it may hold the pipe.
	killWait = time.Second
)

// Script runs a program of one folder, with a vector of arguments and never through a shell.
type Script struct {
	// Folder is where scripts must be.
	Folder string
	// Name is the name of a file in Folder.
	Name string
	// Arguments are expanded each for itself; an empty list is address, subject and message.
	Arguments []string
}

// Check reports what is wrong with the settings.
func (s *Script) Check() error {
	if s.Name == "" || s.Name != filepath.Base(s.Name) || s.Name == "." || s.Name == ".." {
		return fmt.Errorf("script is %q, expected the name of a file in the folder of alert scripts: %w", s.Name, ErrSettings)
	}
	if len(s.Arguments) > maxArguments {
		return fmt.Errorf("%d arguments, expected at most %d: %w", len(s.Arguments), maxArguments, ErrSettings)
	}
	return nil
}

// Send implements Sender. The script must end with code 0 before the context does; otherwise it is killed with its children.
func (s *Script) Send(ctx context.Context, m Message) (string, error) {
	path, err := s.path()
	if err != nil {
		return "", err
	}
	arguments := []string{m.To, m.Subject, m.Body}
	if len(s.Arguments) > 0 {
		arguments = make([]string, len(s.Arguments))
		for i, a := range s.Arguments {
			arguments[i] = m.expand(a)
		}
	}
	for i, a := range arguments {
		if len(a) > maxArgumentBytes {
			a = a[:maxArgumentBytes]
		}
		// The kernel ends an argument at a zero byte.
		arguments[i] = strings.ToValidUTF8(strings.ReplaceAll(a, "\x00", ""), "")
	}
	command := exec.CommandContext(ctx, path, arguments...)
	command.Dir = s.Folder
	command.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}
	var output limited
	command.Stdout, command.Stderr = &output, &output
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = killWait
	err = command.Run()
	told := shorten(output.b.Bytes())
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("killed: %w", ctx.Err())
		}
		return told, fmt.Errorf("script %s: %w: %s", s.Name, err, told)
	}
	return told, nil
}

// path returns the script's file after it has made sure that it is in the folder, links followed.
func (s *Script) path() (string, error) {
	if err := s.Check(); err != nil {
		return "", err
	}
	if s.Folder == "" {
		return "", fmt.Errorf("no folder for alert scripts is set: %w", ErrSettings)
	}
	folder, err := filepath.EvalSymlinks(s.Folder)
	if err != nil {
		return "", fmt.Errorf("folder of alert scripts: %w", cause(err))
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return "", fmt.Errorf("folder of alert scripts: %w", cause(err))
	}
	path, err := filepath.EvalSymlinks(filepath.Join(folder, s.Name))
	if err != nil {
		return "", fmt.Errorf("script %s: %w", s.Name, cause(err))
	}
	if filepath.Dir(path) != folder {
		return "", fmt.Errorf("script %s leads out of the folder of alert scripts: %w", s.Name, ErrSettings)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("script %s: %w", s.Name, cause(err))
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("script %s is no program: expected a file with the right to run: %w", s.Name, ErrSettings)
	}
	return path, nil
}

// cause is an error of the system without the path, which those who read about an alert need not know.
func cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// limited keeps the first bytes written to it and drops the rest.
type limited struct{ b bytes.Buffer }

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if room := maxAnswerBytes - l.b.Len(); room > 0 {
		l.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

var _ io.Writer = (*limited)(nil)

// Permanent reports whether an error says that another attempt cannot go better.
func Permanent(err error) bool { return errors.Is(err, ErrSettings) || errors.Is(err, ErrAddress) }

// Package external makes external checks: the value of an item is what a program of one folder prints.
//
// A program is started directly, never through a shell, and only from that folder: the key of an item, whose parameters may come from discovery,
// chooses among programs that an administrator of the machine put there.
//
// Source of the meaning: the public Zabbix manual, "External checks".
package external

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tidemark/collect/poller"
	"tidemark/expr"
	"tidemark/model"
)

const (
	// atOnce bounds the programs that run at the same time, perHost those for one host.
	atOnce  = 16
	perHost = 4
	// defaultTimeout is how long a program may run when the item says nothing else.
	defaultTimeout = 3 * time.Second
	// maxValueBytes bounds what a program prints; more makes the item unsupported.
	maxValueBytes = 4 << 20
	// maxArguments bounds the parameters of a key.
	maxArguments = 200
)

// Checker makes external checks. It implements poller.Checker.
type Checker struct {
	folder string
}

// New returns a checker of the programs in a folder, which need not exist.
func New(folder string) *Checker {
	// Programs run in the folder, from where a relative name leads elsewhere.
	if absolute, err := filepath.Abs(folder); err == nil && folder != "" {
		folder = absolute
	}
	return &Checker{folder}
}

// Kind returns the kind of checks that a poller makes with the checker.
func (c *Checker) Kind() poller.Kind {
	return poller.Kind{Name: "external check", Types: []model.ItemType{model.External}, Checker: c, MaxInFlight: atOnce, MaxPerHost: perHost, Timeout: defaultTimeout}
}

// Check implements poller.Checker.
func (c *Checker) Check(ctx context.Context, tasks []*poller.Task, results []poller.Result) {
	for i, t := range tasks {
		value, err := c.check(ctx, t.Item.CheckKey())
		if err != nil {
			results[i] = poller.Result{Outcome: poller.NotSupported, Text: []byte(err.Error())}
			continue
		}
		results[i] = poller.Result{Outcome: poller.Value, Text: value}
	}
}

func (c *Checker) check(ctx context.Context, key string) ([]byte, error) {
	name, arguments := expr.SplitKey(key)
	if len(arguments) > maxArguments {
		return nil, fmt.Errorf("the key has %d parameters, expected at most %d", len(arguments), maxArguments)
	}
	for _, a := range arguments {
		if strings.ContainsRune(a, 0) {
			return nil, errors.New("a parameter of the key has a zero byte in it")
		}
	}
	path, err := c.path(name)
	if err != nil {
		return nil, err
	}
	p := Program{Path: path, Arguments: arguments, Folder: c.folder, LimitBytes: maxValueBytes}
	// What it ends with says nothing: the value is all that is printed, on both outputs.
	out, err := p.Run(ctx)
	var ended *EndedError
	if err != nil && !errors.As(err, &ended) {
		return nil, fmt.Errorf("program %s: %w", name, err)
	}
	return bytes.TrimRight(out, " \t\r\n"), nil
}

// path returns the file of a program after it has made sure that it is in the folder, links followed.
func (c *Checker) path(name string) (string, error) {
	if name == "" || name != filepath.Base(name) || name == "." || name == ".." {
		return "", fmt.Errorf("the key begins with %.100q, expected the name of a program in the folder of external checks", name)
	}
	folder, err := filepath.EvalSymlinks(c.folder)
	if err != nil {
		return "", fmt.Errorf("there is no folder of external checks (collect.external_scripts): %w", cause(err))
	}
	path, err := filepath.EvalSymlinks(filepath.Join(folder, name))
	if err != nil {
		return "", fmt.Errorf("program %s in the folder of external checks: %w", name, cause(err))
	}
	if filepath.Dir(path) != folder {
		return "", fmt.Errorf("program %s leads out of the folder of external checks", name)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("program %s: %w", name, cause(err))
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%s in the folder of external checks is no program: expected a file with the right to run", name)
	}
	return path, nil
}

// cause is an error of the system without the path, which those who see the item need not know.
func cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

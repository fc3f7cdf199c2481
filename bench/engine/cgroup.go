package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cgroup is a group of processes with a limit for their memory, the kernel's cache of their files included.
type cgroup struct{ dir string }

// newCgroup makes a group, of version 2 where that has the memory controller, else of version 1. Both need root and a writable hierarchy.
func newCgroup(limitBytes int64) (*cgroup, error) {
	root, file := "/sys/fs/cgroup", "memory.max"
	controllers, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	switch {
	case err == nil && strings.Contains(string(controllers), "memory"):
		// Fails where it is on already or processes are in the root; the file tells.
		_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+memory"), 0o644)
	default:
		root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	}
	dir := filepath.Join(root, "tidemark-bench-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("no memory cgroup: %w", err)
	}
	g := &cgroup{dir: dir}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatInt(limitBytes, 10)), 0o644); err != nil {
		return nil, errors.Join(fmt.Errorf("no memory cgroup: %w", err), g.remove())
	}
	return g, nil
}

// command returns the arguments that run a command in the group; a nil group adds nothing.
func (g *cgroup) command(args []string) []string {
	if g == nil {
		return args
	}
	return append([]string{"sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, g.dir}, args...)
}

// remove removes the group, in which no process is any more.
func (g *cgroup) remove() error {
	if g == nil {
		return nil
	}
	return os.Remove(g.dir)
}

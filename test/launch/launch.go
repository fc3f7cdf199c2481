// Package launch prepares and runs the programs that system tests work with.
package launch

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Main runs a package's tests after its install.sh, if it has one, with the path of the program under test in binary: that of TIDEMARK_BIN, else one
// that is built for this run. It does not return.
func Main(m *testing.M, binary *string) {
	code, err := prepare(m, binary)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// prepare installs the peers and builds the binary.
func prepare(m *testing.M, binary *string) (int, error) {
	if _, err := os.Stat("install.sh"); err == nil {
		if out, err := exec.Command("./install.sh").CombinedOutput(); err != nil {
			return 1, fmt.Errorf("install the peers: %w\n%s", err, out)
		}
	}
	dir, err := os.MkdirTemp("", "tidemark-test")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if *binary, err = build(dir); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// Binary returns the path of the program under test: that of TIDEMARK_BIN, else one that is built for this test.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// build makes the program in a folder, as it is shipped, unless there is one.
func build(dir string) (string, error) {
	if path := os.Getenv("TIDEMARK_BIN"); path != "" {
		return path, nil
	}
	path := filepath.Join(dir, "tidemark")
	c := exec.Command("go", "build", "-o", path, "tidemark/cmd/tidemark")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the binary: %w\n%s", err, out)
	}
	return path, nil
}

// Until waits for a condition that must come true, at most for patience, and fails the test otherwise. what says what was waited for.
func Until(t testing.TB, patience time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("waited %v in vain until %s", patience, what)
		case <-tick.C:
		}
	}
}

// Run starts a child that is killed with its children when the test ends, or by the function that is returned. Its log is shown when the
// test fails.
func Run(t testing.TB, logFile, name string, args ...string) (kill func()) {
	t.Helper()
	_, kill = Group(t, logFile, name, args...)
	return kill
}

// Group is Run that also tells the number of the process, which is that of the group of its children as well.
func Group(t testing.TB, logFile, name string, args ...string) (pid int, kill func()) {
	t.Helper()
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c := exec.Command(name, args...)
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = c.Wait(); close(done) }()
	kill = func() {
		select {
		case <-done:
		default:
			KillGroup(c.Process.Pid)
			<-done
		}
	}
	t.Cleanup(func() {
		kill()
		if t.Failed() {
			text, _ := os.ReadFile(logFile)
			t.Logf("%s:\n%s", logFile, text[max(0, len(text)-4000):])
		}
	})
	return c.Process.Pid, kill
}

// KillGroup kills a process group and waits until none of its processes runs any more, for at most 30 s: until then they hold their ports.
func KillGroup(group int) {
	_ = syscall.Kill(-group, syscall.SIGKILL)
	for deadline := time.Now().Add(30 * time.Second); groupRuns(group) && time.Now().Before(deadline); {
		<-time.After(5 * time.Millisecond)
	}
}

// groupRuns tells whether a process group has a process that is more than an entry waiting for its parent. Source of the fields: proc(5), stat.
func groupRuns(group int) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // It ended meanwhile.
		}
		// The name in parentheses may have spaces; state, parent and group follow it.
		_, rest, _ := bytes.Cut(text[max(0, bytes.LastIndexByte(text, ')')):], []byte(" "))
		fields := bytes.Fields(rest)
		if len(fields) > 2 && string(fields[2]) == strconv.Itoa(group) && fields[0][0] != 'Z' && fields[0][0] != 'X' {
			return true
		}
	}
	return false
}

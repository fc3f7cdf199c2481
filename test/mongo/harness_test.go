package mongo

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tidemark/test/launch"
)

// tidemark is the program under test, ferretdb the server.
var tidemark, ferretdb string

// inside marks the process that runs in the network namespace.
const inside = "TIDEMARK_TEST_MONGO_INSIDE"

func TestMain(m *testing.M) {
	run := outside
	if os.Getenv(inside) != "" {
		run = func() (int, error) { return within(m) }
	}
	if device := os.Getenv(prototypeDevice); device != "" {
		run = func() (int, error) { return runPrototype(device) }
	}
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// outside installs and builds what is needed, and runs the tests again in a network namespace.
func outside() (int, error) {
	if out, err := exec.Command("./install.sh").CombinedOutput(); err != nil {
		return 1, fmt.Errorf("install the peers: %w\n%s", err, out)
	}
	path := os.Getenv("TIDEMARK_BIN")
	if path == "" {
		dir, err := os.MkdirTemp("", "mongo")
		if err != nil {
			return 1, err
		}
		defer os.RemoveAll(dir)
		path = filepath.Join(dir, "tidemark")
		build := exec.Command("go", "build", "-o", path, "tidemark/cmd/tidemark")
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // With cgo it cannot give its privileges up.
		if out, err := build.CombinedOutput(); err != nil {
			return 1, fmt.Errorf("build the binary: %w\n%s", err, out)
		}
	}
	// The child is to end with this process, which the kernel takes for this thread.
	runtime.LockOSThread()
	again := exec.Command(os.Args[0], os.Args[1:]...)
	again.Env = append(os.Environ(), inside+"=1", "TIDEMARK_BIN="+path)
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	err := again.Run()
	if again.ProcessState != nil {
		return again.ProcessState.ExitCode(), nil
	}
	return 1, fmt.Errorf("run the tests in a network namespace (are you root?): %w", err)
}

// within runs the tests in the new namespace, once its loopback device is up.
func within(m *testing.M) (int, error) {
	tidemark = os.Getenv("TIDEMARK_BIN")
	tools, err := filepath.Glob(".tools/ferretdb-v*")
	if err != nil || len(tools) != 1 {
		return 1, fmt.Errorf("install.sh left %d servers in .tools", len(tools))
	}
	if ferretdb, err = filepath.Abs(tools[0]); err != nil {
		return 1, err
	}
	if err := raise("lo"); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// raise sets a network device up.
func raise(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("set %s up: %w", name, err)
	}
	return nil
}

// patience is how long a test waits for something that must come.
const patience = 90 * time.Second

// eventually waits for something that must come.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	launch.Until(t, patience, what, ok)
}

// run starts a program that is ended with the test. Its output is shown when the test fails.
func run(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "DO_NOT_TRACK=1")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		text, _ := os.ReadFile(log.Name())
		log.Close()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", filepath.Base(name), text)
		}
	})
	return cmd
}

// freeAddress finds an address that nobody listens on.
func freeAddress(t testing.TB, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startServer starts FerretDB on a loopback address and returns where it listens.
func startServer(t testing.TB, host string) string {
	t.Helper()
	address := freeAddress(t, host)
	run(t, ferretdb, "--handler=sqlite", "--sqlite-url=file:./", "--state-dir=.", "--listen-addr="+address, "--debug-addr=-", "--telemetry=disable", "--log-level=ERROR")
	eventually(t, "the server listens", func() bool {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return address
}

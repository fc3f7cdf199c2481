package script

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolate puts a process into a group of its own and ends it with its parent.
func isolate(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// limitMemory makes the kernel refuse more private memory than allowed beyond what the process has now. The Go runtime ends the
// process then.
func limitMemory(limitBytes uint64) {
	status, _ := os.ReadFile("/proc/self/status")
	if _, rest, ok := strings.Cut(string(status), "VmData:"); ok {
		var kilobytes uint64
		if _, err := fmt.Sscan(rest, &kilobytes); err == nil {
			limitBytes += kilobytes << 10
		}
	}
	limit := unix.Rlimit{Cur: limitBytes, Max: limitBytes}
	_ = unix.Setrlimit(unix.RLIMIT_DATA, &limit)
	none := unix.Rlimit{}
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &none)
}

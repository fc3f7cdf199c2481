package script

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolate puts a process into a group of its own and ends it with its parent.
func isolate(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// limitMemory makes the kernel refuse more private memory than allowed. The Go runtime ends the process then.
func limitMemory(limitBytes uint64) {
	limit := unix.Rlimit{Cur: limitBytes, Max: limitBytes}
	_ = unix.Setrlimit(unix.RLIMIT_DATA, &limit)
	none := unix.Rlimit{}
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &none)
}

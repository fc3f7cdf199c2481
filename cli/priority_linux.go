package cli

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// lowest is the nice value of work that may wait.
	lowest = 19
	// ioprioIdle is the class of reads and writes that are done when nobody else has any, ioprioProcess says that a thread is meant: ioprio_set(2).
	ioprioIdle    = 3 << 13
	ioprioProcess = 1
)

// lowerPriority lets everything else on the machine go first. Both priorities are those of threads; threads that come later take them over from
// the one that makes them. What the system refuses stays as it was: it is a courtesy only.
func lowerPriority() {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		_ = unix.Setpriority(unix.PRIO_PROCESS, id, lowest)
		_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioProcess, uintptr(id), ioprioIdle)
	}
}

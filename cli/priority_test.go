package cli

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// priorityChild is set in the process that TestLowerPriority starts: priorities cannot be raised again.
const priorityChild = "TIDEMARK_PRIORITY_CHILD"

// TestLowerPriority: what a trial does beside a live server has the lowest priority for CPU and disk, in the threads that are there and in those that come.
func TestLowerPriority(t *testing.T) {
	if os.Getenv(priorityChild) != "" {
		checkLowered(t)
		return
	}
	c := exec.Command(os.Args[0], "-test.run=TestLowerPriority$", "-test.v")
	c.Env = append(os.Environ(), priorityChild+"=1")
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "threads are lowered") {
		t.Errorf("%v\n%s", err, out)
	}
}

func checkLowered(t *testing.T) {
	lowerPriority()
	ended, begun := make(chan struct{}), make(chan struct{})
	for range 4 { // each in a thread of its own
		go func() {
			runtime.LockOSThread()
			begun <- struct{}{}
			<-ended
		}()
		<-begun
	}
	defer close(ended)
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			t.Fatal(err)
		}
		nice, err := unix.Getpriority(unix.PRIO_PROCESS, id) // the system call gives 20 minus the value
		if err == unix.ESRCH {
			continue // it has ended
		}
		disk, _, failed := unix.Syscall(unix.SYS_IOPRIO_GET, ioprioProcess, uintptr(id), 0)
		if failed == unix.ESRCH {
			continue
		}
		if err != nil || nice != 20-lowest || failed != 0 || disk>>13 != ioprioIdle>>13 {
			t.Errorf("thread %d: nice %d, %v; class %d of the disk, %v", id, 20-nice, err, disk>>13, failed)
		}
	}
	t.Logf("%d threads are lowered", len(threads))
}

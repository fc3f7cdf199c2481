package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dropUnusedPages gives the pages of the program itself back that its start touched: the binary holds server, page and scripts too, of which a
// process that only watches uses nothing. They are clean copies of the file; what is used comes back at the next access. What cannot be given back stays.
func dropUnusedPages() {
	program, err := os.Executable()
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		// Pages that can be written may differ from the file.
		if len(fields) < 6 || fields[5] != program || strings.Contains(fields[1], "w") {
			continue
		}
		var from, to uintptr
		if _, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to); err == nil && to > from {
			_, _, _ = syscall.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED)
		}
	}
}

// spareBytes is what the runtime may hold beside the live heap and a quarter of it: stacks, its own tables, what is about to be given back.
const spareBytes = 8 << 20

// staySmall drops the pages of the program again, as all kinds of access bring back more than they need, and has the runtime hold little more than what is in
// use: on a busy machine a collection takes long, and what is allocated meanwhile would stay. The limit follows the live heap, so that a process that needs more
// does not spend its time on collecting.
func staySmall() {
	dropUnusedPages()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if live[0].Value.Kind() != metrics.KindUint64 {
		return
	}
	n := live[0].Value.Uint64()
	debug.SetMemoryLimit(int64(n + n/4 + spareBytes))
}

// keepSmall calls it now and then until the context ends.
func keepSmall(ctx context.Context) {
	again := time.NewTicker(staySmallEvery * time.Second)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			staySmall()
		}
	}
}

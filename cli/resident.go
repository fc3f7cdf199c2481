package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
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

// keepPagesDropped drops them again now and then, as all kinds of access bring back more than they need, until the context ends.
func keepPagesDropped(ctx context.Context) {
	again := time.NewTicker(pagesDroppedEvery * time.Second)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			dropUnusedPages()
		}
	}
}

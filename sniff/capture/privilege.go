//go:build linux

package capture

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// DropPrivileges gives up every capability of the process but those to keep, and makes sure that it gains none again. What is kept must be there
// already. Call it after the ring is open. It needs a binary without cgo, because only then can all threads be reached.
func DropPrivileges(keep ...int) error {
	if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("forbid new privileges: %w", errno)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	kept, err := keptCapabilities(&header, keep)
	if err != nil {
		return err
	}
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&kept[0])), 0); errno != 0 {
		return fmt.Errorf("drop capabilities: %w", errno)
	}
	return nil
}

// keptCapabilities are those of keep that the process has.
func keptCapabilities(header *unix.CapUserHeader, keep []int) (kept [2]unix.CapUserData, err error) {
	if len(keep) == 0 {
		return kept, nil
	}
	var have [2]unix.CapUserData
	if err := unix.Capget(header, &have[0]); err != nil {
		return kept, fmt.Errorf("read capabilities: %w", err)
	}
	for _, c := range keep {
		bit := have[c/32].Permitted & (1 << (c % 32))
		kept[c/32].Permitted |= bit
		kept[c/32].Effective |= bit
	}
	return kept, nil
}

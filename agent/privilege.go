package agent

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"tidemark/sniff/capture"
)

// dropPrivileges gives up every capability. Without them root is a user like others: it can write its own folders only, so that they are kept
// when the agent's folder is somebody else's. A log file of the database's own user needs the right to read it after each rotation.
func (a *Agent) dropPrivileges() {
	if !owned(a.dir) {
		a.log.Warn("privileges are kept: the agent's folder belongs to another user; give it to the agent's user, or run the agent as its owner", "folder", a.dir)
		return
	}
	var keep []int
	if file := a.options.Mongo.Log; file != "" && !owned(file) {
		keep = append(keep, unix.CAP_DAC_READ_SEARCH)
	}
	switch err := capture.DropPrivileges(keep...); {
	case errors.Is(err, unix.ENOTSUP):
		a.log.Warn("privileges are kept: this binary was built with cgo, which cannot drop them in all threads")
	case err != nil:
		a.log.Warn("privileges are kept", "error", err)
	default:
		a.log.Info("every privilege is given up, now that the capture is open", "kept_to_read_the_log", len(keep) > 0)
	}
}

// owned reports whether a file or folder belongs to the user of this process.
func owned(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

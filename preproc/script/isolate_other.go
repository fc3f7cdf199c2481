//go:build !linux

package script

import "os/exec"

func isolate(*exec.Cmd) {}

// limitMemory does nothing: the worker's own watch of its memory must do.
func limitMemory(uint64) {}

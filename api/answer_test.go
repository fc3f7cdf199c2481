package api

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// TestAsError_fullDisk: a full disk is no mistake of the server, and the answer says what to do.
func TestAsError_fullDisk(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		e := AsError(fmt.Errorf("write snap/1: %w", cause))
		if e.Status != http.StatusInsufficientStorage || e.Code != "disk_full" || !strings.Contains(e.Message, "make room") || !strings.Contains(e.Message, "snap/1") {
			t.Errorf("%v is answered %+v", cause, e)
		}
	}
	if e := AsError(syscall.EIO); e.Status != http.StatusInternalServerError {
		t.Errorf("an error of the disk is answered %d", e.Status)
	}
}

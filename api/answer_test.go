package api

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// elsewhere is an error of a fenced server.
type elsewhere struct{}

func (elsewhere) Error() string { return "change it at the primary" }
func (elsewhere) Unavailable()  {}

// TestAsError_fullDisk: a full disk is no mistake of the server, and the answer says what to do.
func TestAsError_fullDisk(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		e := AsError(fmt.Errorf("write snap/1: %w", cause))
		if e.Status != http.StatusInsufficientStorage || e.Code != "disk_full" || !strings.Contains(e.Message, "make room") || !strings.Contains(e.Message, "snap/1") {
			t.Errorf("%v is answered %+v", cause, e)
		}
	}
	if e := AsError(fmt.Errorf("put retention: %w", elsewhere{})); e.Status != http.StatusServiceUnavailable || e.Code != "standby" {
		t.Errorf("a server that cannot, where another can, answers %+v", e)
	}
	for text, want := range map[string]string{
		"open /var/lib/tidemark/engine/datafile-1-0000000003.ndf: input/output error": "open datafile-1-0000000003.ndf: input/output error",
		`read "/data/config.db", /srv/data/x and snap/1`:                              `read "config.db", x and snap/1`,
		"/srv/tidemark/config.db: write: full":                                        "config.db: write: full",
		"last(/host/key[/dev/sda]) of http://127.0.0.1/a/b":                           "last(/host/key[/dev/sda]) of http://127.0.0.1/a/b",
	} {
		if e := AsError(errors.New(text)); e.Status != http.StatusInternalServerError || e.Message != want {
			t.Errorf("%s: answered %+v, want %s", text, e, want)
		}
	}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	if e := AsError(fmt.Errorf("read the chart: connect to user=tidemark: %w", refused)); e.Status != http.StatusServiceUnavailable || e.Message != "what the server needs for this cannot be reached now: dial tcp: connection refused" {
		t.Errorf("a database that is away: %+v", e)
	}
	if e := AsError(syscall.EIO); e.Status != http.StatusInternalServerError {
		t.Errorf("an error of the disk is answered %d", e.Status)
	}
}

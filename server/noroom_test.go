package server

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tidemark/api"
	"tidemark/storage"
)

// TestNoRoom: a snapshot on a full disk is not the server's fault.
func TestNoRoom(t *testing.T) {
	s := &snapshots{data: t.TempDir()}
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT, storage.ErrFull} {
		var got *api.Error
		if err := s.noRoom(fmt.Errorf("link /srv/values/x: %w", cause)); !errors.As(err, &got) || got.Status != http.StatusInsufficientStorage || got.Code != "disk_full" ||
			!strings.Contains(got.Message, "Delete an older snapshot") || !strings.Contains(got.Message, s.data) ||
			!strings.Contains(got.Message, "link x: ") {
			t.Errorf("%v became %v", cause, err)
		}
	}
	if other := errors.New("something else"); !errors.Is(s.noRoom(other), other) {
		t.Error("another error became a full disk")
	}
}

// TestOptions_makeAbsolute: however the data folder was named, answers do not have it.
func TestOptions_makeAbsolute(t *testing.T) {
	t.Chdir(t.TempDir())
	o := Options{Data: filepath.Join("some", "data")}
	if err := o.makeAbsolute(); err != nil {
		t.Fatal(err)
	}
	failed := fmt.Errorf("open %s: %w", filepath.Join(o.Data, "config.db"), syscall.ENOSPC)
	if text := api.AsError(failed).Message; strings.Contains(text, "some") || !strings.Contains(text, "open config.db: ") {
		t.Errorf("the answer is %q", text)
	}
}

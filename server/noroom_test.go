package server

import (
	"errors"
	"fmt"
	"net/http"
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
		if err := s.noRoom(fmt.Errorf("link x: %w", cause)); !errors.As(err, &got) || got.Status != http.StatusInsufficientStorage || got.Code != "disk_full" ||
			!strings.Contains(got.Message, "Delete an older snapshot") || !strings.Contains(got.Message, s.data) {
			t.Errorf("%v became %v", cause, err)
		}
	}
	if other := errors.New("something else"); !errors.Is(s.noRoom(other), other) {
		t.Error("another error became a full disk")
	}
}

package requests

import (
	"testing"
	"time"
)

func TestSearch(t *testing.T) {
	r := newHistory(t, 10*time.Minute).store.reader()
	f := func(text string, limit, want int) {
		t.Helper()
		found := r.Search(text, limit)
		if len(found) != want {
			t.Errorf("%q finds %+v, want %d", text, found, want)
		}
		for _, s := range found {
			if s.Instance != "db 1/"+testAddress || s.ID == "" || s.Command == "" {
				t.Errorf("%q finds %+v", text, s)
			}
		}
	}
	f("orders", 10, 2)
	f("orders", 1, 1)
	f("shop.users find", 10, 1)
	f("aa03", 10, 1)
	f("nothing like it", 10, 0)
	f("other", 10, 0)
}

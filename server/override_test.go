package server

import (
	"net/http"
	"strings"
	"testing"
)

// TestServer_retention keeps all values as long as is asked on the page, at once and over a restart, and refuses what it cannot.
func TestServer_retention(t *testing.T) {
	data := t.TempDir()
	r := run(t, data)
	put := func(body string, status int, text string) {
		t.Helper()
		if answer := r.call(http.MethodPut, "/api/storage/retention", body, status); !strings.Contains(answer, text) {
			t.Errorf("PUT %s: %s, expected %q", body, answer, text)
		}
	}
	put(`{"history_seconds":60,"trends_seconds":0}`, http.StatusBadRequest, "an hour to 25 years")
	put(`{"history_seconds":7200,"trends_seconds":3600}`, http.StatusBadRequest, "trends_seconds is less")
	put(`{"history":7200}`, http.StatusBadRequest, "")
	put(`{"history_seconds":2678400,"trends_seconds":31536000}`, http.StatusOK, `"history_seconds":2678400`)
	r.stop()

	r = run(t, data)
	var got retentionAnswer
	r.get("/api/storage/retention", &got)
	if want := (retentionAnswer{HistorySeconds: 31 * 86400, TrendsSeconds: 365 * 86400}); got != want {
		t.Errorf("after a restart %+v, expected %+v", got, want)
	}
	r.stop()
}

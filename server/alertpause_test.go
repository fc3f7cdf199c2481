package server

import (
	"net/http"
	"strings"
	"testing"
)

// TestAlertPause starts with alerts paused, and resumes them.
func TestAlertPause(t *testing.T) {
	r := run(t, t.TempDir())
	put := func(body string) int {
		t.Helper()
		q, err := http.NewRequest(http.MethodPut, r.http+"/api/alerting/paused", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	for _, step := range []struct {
		body   string
		status int
		paused bool
	}{{`{"paused":true}`, 200, true}, {`{}`, 400, true}, {`{"paused":false}`, 200, false}} {
		if got := put(step.body); got != step.status {
			t.Errorf("%s is answered %d, expected %d", step.body, got, step.status)
		}
		var p alertPause
		if r.get("/api/alerting/paused", &p); p.Paused != step.paused || p.Paused != r.server.alerter.Paused() {
			t.Errorf("after %s: %+v", step.body, p)
		}
	}
}

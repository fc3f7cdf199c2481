package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestStandbyRoutes_otherStore says of each command for standbys why there is none with PostgreSQL as the store.
func TestStandbyRoutes_otherStore(t *testing.T) {
	var found []string
	for _, r := range (&Server{}).standbyRoutes() {
		found = append(found, r.Method+" "+r.Pattern)
		answer := httptest.NewRecorder()
		r.Handler.ServeHTTP(answer, httptest.NewRequest(r.Method, r.Pattern, nil))
		if answer.Code != http.StatusNotFound || !strings.Contains(answer.Body.String(), "standbys are for the embedded engine") {
			t.Errorf("%s: %d %s", r.Pattern, answer.Code, answer.Body)
		}
	}
	if got := strings.Join(found, ", "); got != "GET /api/standby, POST /api/standby/promote, GET /api/storage/digest" {
		t.Errorf("routes %s", got)
	}
}

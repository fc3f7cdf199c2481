package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tidemark/server"
)

func TestImport_plan(t *testing.T) {
	var asked string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.Path
		_, _ = io.WriteString(w, `{"report":{"version":"7.0","plan":true,"counts":[{"kind":"items","created":1}],"objects":[{"what":"created","kind":"items","owner":"web-1","name":"temperature"}]}}`)
	}))
	defer s.Close()
	report, err := importOver(t.Context(), s.URL, server.File{Name: "host.yaml", Source: []byte("zabbix_export:")}, true)
	if err != nil {
		t.Fatal(err)
	}
	text := report.String()
	for _, want := range []string{"host.yaml: Zabbix export 7.0", "nothing was changed", "created: item: web-1, temperature"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	if asked != "POST /api/configuration/plan" {
		t.Errorf("asked for %s", asked)
	}
}

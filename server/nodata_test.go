package server

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tidemark/api/rest"
)

// TestNoData_story puts a host into a maintenance without data: its values are answered as processed and not kept, until it is over.
func TestNoData_story(t *testing.T) {
	r := run(t, t.TempDir())
	r.importExport()
	n := 0
	// last is the value that is shown after one more was sent.
	last := func() (sent, shown string) {
		n++
		sent = fmt.Sprint(n)
		r.sender(sent, time.Now().Unix())
		var items rest.ItemList
		r.get("/api/items?search=temperature", &items)
		if len(items.Items) == 1 && items.Items[0].Last != nil {
			shown = items.Items[0].Last.Value.V
		}
		return sent, shown
	}
	stored := func() bool { sent, shown := last(); return sent == shown }
	wait(t, "a value", stored)
	start := time.Now().Add(-2 * time.Minute).Format("2006-01-02T15:04")
	r.call(http.MethodPut, "/api/alerting", fmt.Sprintf(`{"maintenances":[{"name":"m","hosts":["web-1"],"no_data":true,"periods":[{"every":"once","start":%q,"for":"1h"}]}]}`, start), 200)
	wait(t, "values to be dropped", func() bool { last(); return r.metric("tidemark_preproc_maintenance_values_total") > 0 })
	dropped := r.metric("tidemark_preproc_maintenance_values_total")
	for range 3 {
		if sent, shown := last(); sent == shown {
			t.Errorf("%s was kept", sent)
		}
	}
	if now := r.metric("tidemark_preproc_maintenance_values_total"); now != dropped+3 {
		t.Errorf("%d values dropped, want %d", now, dropped+3)
	}
	r.call(http.MethodDelete, "/api/alerting/maintenance/m", "", 200)
	wait(t, "values to be stored again", stored)
}

// metric returns a counter.
func (r *running) metric(name string) int {
	r.t.Helper()
	answer, err := http.Get(r.http + "/metrics")
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		var n int
		if rest, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			if _, err := fmt.Sscan(rest, &n); err != nil {
				r.t.Fatal(err)
			}
			return n
		}
	}
	r.t.Fatalf("no metric %s", name)
	return 0
}

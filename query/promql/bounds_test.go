package promql

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
)

// TestQuery_bounds has queries that would end the process or overflow the engine's counters, and their harmless neighbours.
func TestQuery_bounds(t *testing.T) {
	e := newTestEngine(newFakeStore(), day)
	now := time.Unix(day, 0)
	instant := func(text string) Request { return Request{Text: text, At: now} }
	for _, c := range []struct {
		request Request
		refused string
	}{
		{instant("sum_over_time(gauge[10y:1ms])"), "has more than 5000000 steps"},
		{instant("sum_over_time(vector(1)[100y:1ms])"), "has more than 5000000 steps"},
		{instant("sum_over_time(vector(1)[200y:1ms] offset 200y)"), "has more than 5000000 steps"},
		{instant("vector(1)[290y:]"), "has more than 5000000 steps"},
		{instant("max_over_time(max_over_time(vector(1)[290y:290y])[290y:290y])"), "has more than 5000000 steps"},
		{Request{Text: "max_over_time(vector(1)[1m:1s])", From: time.Unix(0, 0), To: time.Unix(1e8, 0), Step: 24 * time.Hour}, "has more than 5000000 steps"},
		{instant(strings.Repeat("max_over_time(", 10) + "gauge[1h:1s]" + strings.Repeat(")[1h:1s]", 9) + ")"), "read each sample more than"},
		{instant(strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300)), "nested more than 200 levels deep"},
		{instant("1" + strings.Repeat("+1", 300)), "nested more than 200 levels deep"},
		{instant("-" + strings.Repeat("(-", 150) + "1" + strings.Repeat(")", 150)), "nested more than 200 levels deep"},
		{instant("max_over_time(vector(1)[1d:1s])"), ""},
		{instant("max_over_time(max_over_time(vector(1)[1h:1m])[1h:1m])"), ""},
		{instant("max_over_time(vector(1)[1h:])"), ""},
		{instant("1" + strings.Repeat("+1", 100)), ""},
	} {
		err := e.Query(t.Context(), c.request, func(r *promql.Result) error { return r.Err })
		var input *InputError
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%.60s: %v", c.request.Text, err)
		case c.refused != "" && (!errors.As(err, &input) || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%.60s: %v, want a refusal with %q", c.request.Text, err, c.refused)
		}
	}
}

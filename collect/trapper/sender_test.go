package trapper

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"tidemark/model"
	"tidemark/wire/zbx"
)

func TestSender_countsEveryKindOfRow(t *testing.T) {
	h := start(t, Options{})
	got := h.counts(`{"data":[
		{"host":"h1","key":"trap.f","value":"3.25","clock":1796000000,"ns":5},
		{"host":"h1","key":"trap.t","value":"two\nlines"},
		{"host":"h1","key":"http.trap","value":7},
		{"host":"h1","key":"http","value":"1"},
		{"host":"h1","key":"agent.ping","value":"1"},
		{"host":"h1","key":"nosuch","value":"1"},
		{"host":"nohost","key":"trap.f","value":"1"},
		{"host":"off","key":"trap.f","value":"1"},
		{"host":"h1","key":"trap.off","value":"1"},
		{"host":"h1","key":"trap.f","value":"1","clock":4102444800},
		{"host":"h1","key":"trap.f","value":"1","clock":1,"ns":1000000000},
		{"host":"h1","key":"trap.f"},
		{"key":"trap.f","value":"1"},
		{"host":"h2","key":"trap.f","value":"notanumber"},
		{"host":"h2","key":"trap.f","value":"gone","state":1},
		{"host":"h2","key":"trap.f","value":"ZBX_NOTSUPPORTED"}],"request":"sender data","clock":5,"ns":6}`)
	if want := (zbx.Counts{Processed: 6, Failed: 10, Total: 16}); got != want {
		t.Errorf("counts %+v, expected %+v", got, want)
	}
	want := []row{
		{10, 1796000000_000000005, model.Raw, "3.25"},
		{11, arrival, model.Raw, "two\nlines"},
		{14, arrival + 1, model.Raw, "7"},
		{20, arrival + 2, model.Raw, "notanumber"},
		{20, arrival + 3, model.Unsupported, "gone"},
		{20, arrival + 4, model.Unsupported, "ZBX_NOTSUPPORTED"},
	}
	if rows := h.sink.taken(); fmt.Sprint(rows) != fmt.Sprint(want) {
		t.Errorf("rows\n%v, expected\n%v", rows, want)
	}
	for reason, want := range map[string]uint64{wrongType: 2, unknownItem: 1, unknownHost: 1, disabled: 2, badRow: 2, noValue: 1, noHost: 1} {
		if got := h.refusedValues(reason); got != want {
			t.Errorf("refused for %s: %d, expected %d", reason, got, want)
		}
	}
	if got := h.counter("tidemark_trapper_values_total"); got != 6 {
		t.Errorf("counter of processed values is %d", got)
	}
}

func TestSender_refusedValueIsNamedInTheLog(t *testing.T) {
	var log bytes.Buffer // read after the answers, written before them
	h := start(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	h.counts(`{"request":"sender data","data":[
		{"host":"h1","key":"nosuch","value":"1"},
		{"host":"h1","key":"nosuch too","value":"1"},
		{"host":"nohost","key":"trap.f","value":"1"}]}`)
	text := log.String()
	for _, want := range []string{"reason=unknown_item suppressed=0 host=h1 key=nosuch", "reason=unknown_host suppressed=0 host=nohost key=trap.f"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log has no %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "nosuch too") {
		t.Errorf("the same reason is in the log twice within the interval:\n%s", text)
	}
}

func TestSender_clockWithoutNsCountsOverTheRequest(t *testing.T) {
	h := start(t, Options{})
	var rows []string
	for i := range 5 {
		rows = append(rows, fmt.Sprintf(`{"host":"h1","key":"trap.f","value":"%d","clock":"1796000000"}`, i))
	}
	request := `{"request":"sender data","data":[` + strings.Join(rows, ",") + `]}`
	for range 2 {
		h.counts(request)
	}
	for i, r := range h.sink.taken() {
		if want := 1796000000_000000000 + int64(i%5); r.at != want {
			t.Errorf("row %d is at %d, expected %d", i, r.at, want)
		}
	}
}

func TestSender_answersOnlyWhatIsDurable(t *testing.T) {
	h := start(t, Options{})
	request := `{"request":"sender data","data":[{"host":"h1","key":"trap.f","value":"1"}]}`
	h.sink.set(errFull, nil)
	if got := h.ask(request); got != "" {
		t.Errorf("a refused batch was answered: %s", got)
	}
	h.sink.set(nil, errFull)
	if got := h.ask(request); got != "" {
		t.Errorf("a batch that did not become durable was answered: %s", got)
	}
	if got := h.refused(notStored); got != 2 {
		t.Errorf("%d requests were not stored, expected 2", got)
	}
	h.sink.set(nil, nil)
	h.counts(request)
}

func TestSender_splitsLargeRequests(t *testing.T) {
	h := start(t, Options{})
	const rowCount = 40_000
	var b strings.Builder
	b.WriteString(`{"request":"sender data","data":[`)
	for i := range rowCount {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"host":"h1","key":"trap.f","value":"%d","clock":1,"ns":%d}`, i, i)
	}
	b.WriteString("]}")
	if got := h.counts(b.String()); got.Processed != rowCount {
		t.Fatalf("counts %+v", got)
	}
	rows := h.sink.taken()
	for i, r := range rows {
		if r.at != 1e9+int64(i) || r.text != fmt.Sprint(i) {
			t.Fatalf("row %d is %v", i, r)
		}
	}
	if len(rows) != rowCount || h.sink.batches != 3 {
		t.Errorf("%d rows in %d batches, expected 40000 in 3", len(rows), h.sink.batches)
	}
}

func TestText_forms(t *testing.T) {
	h := start(t, Options{})
	for request, want := range map[string]string{
		"h1:trap.f:1.5\n":               "OK",
		"h1:nosuch:1\n":                 "FAIL",
		"ZBX_GET_ACTIVE_CHECKS\nh1\n":   "agent.ping:5:0\nlog[/a,\"ERR\"]:1:0\nZBX_EOF\n",
		"ZBX_GET_ACTIVE_CHECKS\nnone\n": "ZBX_EOF\n",
		`{"request":"sender data","data":[{"host":"h1","key":"trap.f","value":"2"}]}`: `{"response":"success","info":"processed: 1; failed: 0; total: 1;`,
	} {
		if got := string(h.send([]byte(request))); !strings.HasPrefix(got, want) || got == "" {
			t.Errorf("%q: answer %q, expected %q", request, got, want)
		}
		if strings.HasPrefix(request, "{") {
			continue
		}
		if got := string(h.send(zbx.AppendFrame(nil, []byte(request)))); got != want {
			t.Errorf("%q in a frame: answer %q, expected %q", request, got, want)
		}
	}
	if rows := h.sink.taken(); len(rows) != 3 {
		t.Errorf("rows %v", rows)
	}
}

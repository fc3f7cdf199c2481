package rest

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tidemark/model"
)

// events reads a stream line by line until all of want were seen in this order, on one line or on several.
func events(t *testing.T, lines *bufio.Scanner, want ...string) {
	t.Helper()
	for n := 0; len(want) > 0 && n < 1000 && lines.Scan(); n++ {
		for len(want) > 0 && strings.Contains(lines.Text(), want[0]) {
			want = want[1:]
		}
	}
	if len(want) > 0 {
		t.Fatalf("the stream ended before %q: %v", want, lines.Err())
	}
}

func TestLive(t *testing.T) {
	f := newFakeServer(t)
	server := httptest.NewServer(f.handler)
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/live?items=12&host=1&overview=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.Header.Get("Content-Type") != "text/event-stream" || response.Header.Get("Content-Encoding") != "" {
		t.Fatalf("headers %v", response.Header)
	}
	lines := bufio.NewScanner(response.Body)
	events(t, lines, ": live", "event: overview", `data: {"hosts":`)
	b := model.NewBatch()
	b.AppendUint(11, 5_000_000, 1<<63)
	b.AppendString(12, 6_000_000, model.Text, "a\nb")
	b.AppendFloat(999, 6_000_000, 1)
	f.hub.Publish(b)
	// A stream that is ready between the two sends them apart.
	events(t, lines, "event: values", `data: {"values":[["11",5,"9223372036854775808"]`, `["12",6,"a\nb"]]}`)
	f.hub.ProblemsChanged()
	events(t, lines, "event: problems", "data: {}", "event: overview")
}

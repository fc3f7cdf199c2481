package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// serve is a server whose answers handler writes.
func serve(t *testing.T, handler http.HandlerFunc, token string) *Client {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	c, err := New(Options{Address: s.URL, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNew(t *testing.T) {
	for _, c := range []struct{ address, token, want string }{
		{"", "", "http://127.0.0.1:8420"},
		{"monitor.example:8420", "", "http://monitor.example:8420"},
		{"https://monitor.example/", "tm_x", "https://monitor.example"},
		{"ftp://monitor.example", "", "expected host:port"},
		{"http://name:password@monitor.example", "", "expected host:port"},
		{"http://", "", "expected host:port"},
		{"a b", "", "expected host:port"},
		{"", "two\nlines", "expected one line"},
	} {
		got, err := New(Options{Address: c.address, Token: c.token})
		switch {
		case err != nil && !strings.Contains(err.Error(), c.want):
			t.Errorf("%q: %v, want %s", c.address, err, c.want)
		case err == nil && got.base != c.want:
			t.Errorf("%q: %s, want %s", c.address, got.base, c.want)
		}
	}
}

// TestClient_pages walks a list of three pages, with the filter in each request, and ends where the caller does.
func TestClient_pages(t *testing.T) {
	var asked []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = append(asked, r.URL.Path+" "+q.Get("cursor")+" "+q.Get("limit")+" "+q.Get("severity")+" "+q.Get("open"))
		next := map[string]string{"": "b", "b": "c", "c": ""}[q.Get("cursor")]
		fmt.Fprintf(w, `{"problems":[{"event_id":"1%s"},{"event_id":"2%s"}],"total":6,"next":%q}`, q.Get("cursor"), q.Get("cursor"), next)
	}, "")
	var got []string
	f := ProblemFilter{Open: true, Severities: []string{"high", "disaster"}}
	for p, err := range c.AllProblems(t.Context(), f) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p.EventID)
	}
	if text := strings.Join(got, " "); text != "1 2 1b 2b 1c 2c" {
		t.Errorf("problems %s", text)
	}
	want := "/api/problems  1000 high,disaster true, /api/problems b 1000 high,disaster true, /api/problems c 1000 high,disaster true"
	if text := strings.Join(asked, ", "); text != want {
		t.Errorf("asked for %s\nwant %s", text, want)
	}
	asked = nil
	for range c.AllProblems(t.Context(), f) {
		break
	}
	if len(asked) != 1 {
		t.Errorf("a walk that ends with the first problem asks for %d pages", len(asked))
	}
	list, err := c.Problems(t.Context(), ProblemFilter{}, Page{Limit: 2, Cursor: "b"})
	if err != nil || list.Next != "c" || list.Total != 6 {
		t.Errorf("one page: %+v %v", list, err)
	}
}

// TestClient_errors reads answers that are no success: of the server, of a proxy on the way, and none at all.
func TestClient_errors(t *testing.T) {
	answer := func(status int, body string) *Client {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}, "tm_x")
	}
	_, err := answer(404, `{"error":{"code":"not_found","message":"no host has this id"}}`).Hosts(t.Context(), HostFilter{}, Page{})
	var e *Error
	if !errors.As(err, &e) || !IsNotFound(err) || e.Code != "not_found" || err.Error() != "no host has this id" || !e.TokenSent || e.Temporary() {
		t.Errorf("not found: %v %+v", err, e)
	}
	_, err = answer(500, `{"error":{"code":"internal","message":"disk","request_id":"0011223344556677"}}`).Overview(t.Context())
	if !errors.As(err, &e) || e.RequestID != "0011223344556677" || e.Temporary() {
		t.Errorf("internal: %v %+v", err, e)
	}
	_, err = answer(502, `<html>`).Overview(t.Context())
	if !errors.As(err, &e) || e.Code != "" || !e.Temporary() || err.Error() != "the server answered 502 Bad Gateway" {
		t.Errorf("a proxy: %v %+v", err, e)
	}
	if _, err = answer(401, `{}`).Overview(t.Context()); !IsUnauthorized(err) || IsDenied(err) {
		t.Errorf("unauthorized: %v", err)
	}
	if _, err = answer(302, ``).Overview(t.Context()); err == nil {
		t.Error("a redirect is followed or passed over")
	}
	if _, err = answer(200, `{"hosts":`).Overview(t.Context()); err == nil || errors.As(err, &e) {
		t.Errorf("half an answer: %v", err)
	}
	for _, err := range answer(403, `{"error":{"code":"denied","message":"no"}}`).AllItems(t.Context(), ItemFilter{}) {
		if !IsDenied(err) {
			t.Errorf("a walk that is denied: %v", err)
		}
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	c, err := New(Options{Address: gone.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Overview(t.Context()); err == nil || !strings.Contains(err.Error(), "no answer from the server at "+gone.URL) {
		t.Errorf("nobody listens: %v", err)
	}
}

// TestClient_context ends a call that waits for its answer.
func TestClient_context(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}, "")
	if _, err := c.Overview(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that is ended: %v", err)
	}
}

// TestClient_values sends the token, bounds a range without bounds, finds an item by key and reads values without loss.
func TestClient_values(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch {
		case r.Header.Get("Authorization") != "Bearer tm_x":
			t.Errorf("Authorization %q", r.Header.Get("Authorization"))
		case r.URL.Path == "/api/hosts":
			fmt.Fprint(w, `{"hosts":[{"id":"3","host":"db10"},{"id":"4","host":"db1"}]}`)
		case r.URL.Path == "/api/items" && q.Get("host") == "4":
			fmt.Fprint(w, `{"items":[{"id":"8","key":"disk.used[/var]"},{"id":"9","key":"disk.used[/]"}]}`)
		case r.URL.Path == "/api/values" && q.Get("item") == "9" && q.Get("from") != "" && q.Get("to") != "":
			fmt.Fprint(w, `{"values":[{"at":1,"at_ns":"1000001","value":{"t":"unsigned","v":"18446744073709551615"}}]}`)
		default:
			t.Errorf("asked for %s", r.URL)
		}
	}, "tm_x")
	item, err := c.ItemByKey(t.Context(), "db1", "disk.used[/]")
	if err != nil {
		t.Fatal(err)
	}
	for v, err := range c.AllValues(t.Context(), item.ID, ValueFilter{}) {
		if err != nil || v.Value.V != "18446744073709551615" || v.AtNS != "1000001" {
			t.Errorf("%+v %v", v, err)
		}
	}
	if _, err := c.ItemByKey(t.Context(), "db1", "disk"); !errors.Is(err, ErrNoObject) {
		t.Errorf("a key that is not there: %v", err)
	}
	if _, err := c.HostByName(t.Context(), "db"); !errors.Is(err, ErrNoObject) {
		t.Errorf("a host that is not there: %v", err)
	}
}

// TestClient_changes sends a body, and puts the filters of times into queries.
func TestClient_changes(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Method != http.MethodPost || r.URL.Path != "/api/problem-updates" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s %v", r.Method, r.URL, err)
		}
		if fmt.Sprint(body) != "map[acknowledge:true event_ids:[7] message:I look at it]" {
			t.Errorf("the body %v", body)
		}
		fmt.Fprint(w, `{"event_ids":["7"]}`)
	}, "")
	if err := c.Acknowledge(t.Context(), "7", "I look at it"); err != nil {
		t.Error(err)
	}
	at := time.UnixMilli(1_790_000_000_000)
	got := ProblemFilter{From: at, To: at.Add(time.Second), HostID: "1", Search: "a b"}.Query().Encode()
	if got != "from=1790000000000&host=1&search=a+b&to=1790000001000" {
		t.Error(got)
	}
}

// TestNumbers reads what it writes; NaN and infinity are null and come back as NaN.
func TestNumbers(t *testing.T) {
	text, err := json.Marshal(Numbers{1, 0.1, math.NaN(), 1e300})
	if err != nil || string(text) != "[1,0.1,null,1e+300]" {
		t.Fatalf("%s %v", text, err)
	}
	var back Numbers
	if err := json.Unmarshal(text, &back); err != nil || len(back) != 4 || back[1] != 0.1 || !math.IsNaN(back[2]) || back[3] != 1e300 {
		t.Errorf("%v %v", back, err)
	}
	if err := json.Unmarshal([]byte("null"), &back); err != nil || back != nil {
		t.Errorf("null: %v %v", back, err)
	}
}

// FuzzError reads answers of anybody.
func FuzzError(f *testing.F) {
	f.Add(500, []byte(`{"error":{"code":"internal","message":"x","request_id":"y"}}`))
	f.Add(404, []byte(`{"error":7}`))
	f.Fuzz(func(t *testing.T, status int, text []byte) {
		if ReadError(status, text, false).Error() == "" {
			t.Errorf("%d %q has no text", status, text)
		}
	})
}

// TestClient_redirect keeps the token where it belongs, also with a client of the caller's.
func TestClient_redirect(t *testing.T) {
	asked := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization")
		fmt.Fprint(w, `{"hosts":[]}`)
	}))
	defer other.Close()
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) }))
	defer first.Close()
	for _, own := range []*http.Client{nil, {}} {
		c, err := New(Options{Address: first.URL, Token: "secret", HTTP: own})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Hosts(t.Context(), HostFilter{}, Page{}); err == nil {
			t.Error("a redirect is followed")
		}
	}
	if len(asked) > 0 {
		t.Errorf("the token went elsewhere: %q", <-asked)
	}
}

// TestClient_endless ends a walk when the server answers one page again and again.
func TestClient_endless(t *testing.T) {
	n := 0
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		n++
		fmt.Fprint(w, `{"problems":[],"next":"b"}`)
	}, "")
	var last error
	for _, err := range c.AllProblems(t.Context(), ProblemFilter{}) {
		last = err
	}
	if last == nil || n != 2 {
		t.Errorf("%v after %d pages", last, n)
	}
}

package api

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tidemark/query"
)

func TestGuard(t *testing.T) {
	for _, c := range []struct {
		host, origin, site, mode string
		want                     bool
	}{
		{host: "127.0.0.1:8420", want: true},
		{host: "127.9.8.7", want: true},
		{host: "localhost:8420", want: true},
		{host: "LOCALHOST", want: true},
		{host: "[::1]:8420", want: true},
		{host: "[::1]", want: true},
		{host: "[::ffff:127.0.0.1]:1", want: true},
		{host: "monitor.example.net:8420", want: true}, // named in the guard
		{host: "", want: false},
		{host: "evil.example", want: false},
		{host: "127.0.0.1.evil.example:8420", want: false},
		{host: "localhost.evil.example", want: false},
		{host: "10.0.0.1:8420", want: false},
		{host: "[::1", want: false},
		{host: "::1", want: false},
		{host: "[::1%25lo]:80", want: false},
		{host: "2130706433", want: false},
		{host: "127.0.0.1:8420", origin: "http://127.0.0.1:8420", want: true},
		{host: "localhost", origin: "http://localhost", want: true},
		{host: "localhost", origin: "http://localhost:80", want: true},
		{host: "127.0.0.1:8420", origin: "https://127.0.0.1:8420", want: false},
		{host: "127.0.0.1:8420", origin: "http://localhost:8420", want: false},
		{host: "127.0.0.1:8420", origin: "http://127.0.0.1:9999", want: false},
		{host: "127.0.0.1:8420", origin: "http://evil.example", want: false},
		{host: "127.0.0.1:8420", origin: "null", want: false},
		{host: "127.0.0.1:8420", origin: "http://127.0.0.1:8420/x", want: false},
		{host: "127.0.0.1:8420", site: "cross-site", mode: "no-cors", want: false},
		{host: "127.0.0.1:8420", site: "cross-site", mode: "navigate", want: true},
		{host: "127.0.0.1:8420", site: "same-origin", mode: "cors", want: true},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = c.host
		for name, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site, "Sec-Fetch-Mode": c.mode} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		err := Guard{Hosts: []string{"monitor.example.net"}}.Check(r)
		if (err == nil) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
		if err != nil && AsError(err).Status != http.StatusForbidden {
			t.Errorf("%+v: status %d", c, AsError(err).Status)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Host = "anything.example"
	if err := (Guard{AnyHost: func() bool { return true }}).Check(r); err != nil {
		t.Errorf("AnyHost: %v", err)
	}
}

func get(h http.Handler, method, path string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host = "127.0.0.1:8420"
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func errorCode(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var body ErrorAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Error.Message == "" {
		t.Fatalf("body %q: %v", w.Body, err)
	}
	return fmt.Sprintf("%d %s", w.Code, body.Error.Code)
}

func testHandler() http.Handler {
	text := func(s string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) })
	}
	fails := func(err error) http.Handler {
		return JSON(func(*http.Request) (any, error) { return nil, err })
	}
	routes := []Route{
		{Method: "GET", Pattern: "/api/short", Permission: View, Handler: text("short")},
		{Method: "GET", Pattern: "/api/long", Permission: View, Handler: text(strings.Repeat("long ", 1000))},
		{Method: "POST", Pattern: "/api/short", Permission: Edit, MaxBodyBytes: 4, Handler: JSON(func(r *http.Request) (any, error) {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, BodyError(err)
			}
			return string(b), nil
		})},
		{Method: "GET", Pattern: "/api/panic", Permission: View, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "begun")
			panic("broken")
		})},
		{Method: "GET", Pattern: "/api/limit", Permission: View, Handler: fails(&query.LimitError{What: "too much"})},
		{Method: "GET", Pattern: "/api/timeout", Permission: View, Handler: fails(fmt.Errorf("read: %w", context.DeadlineExceeded))},
		{Method: "GET", Pattern: "/api/internal", Permission: View, Handler: fails(errors.New("disk on fire"))},
		{Method: "GET", Pattern: "/open", Permission: Public, Handler: text("open")},
		{Method: "GET", Pattern: "/api/slow", Permission: View, Timeout: time.Nanosecond, Handler: JSON(func(r *http.Request) (any, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})},
	}
	return NewHandler(routes, text("page"), Options{Authorize: func(r *http.Request, route Route) (context.Context, error) {
		if r.Header.Get("Denied") != "" {
			return nil, &Error{http.StatusForbidden, "denied", "needs " + string(route.Permission)}
		}
		return r.Context(), nil
	}})
}

func TestHandler_errors(t *testing.T) {
	h := testHandler()
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/api/nothing", "404 not_found"},
		{"PUT", "/api/short", "405 method_not_allowed"},
		{"GET", "/api/panic", "500 internal"},
		{"GET", "/api/limit", "422 limit"},
		{"GET", "/api/timeout", "503 timeout"},
		{"GET", "/api/slow", "503 timeout"},
		{"GET", "/api/internal", "500 internal"},
	} {
		if got := errorCode(t, get(h, c.method, c.path, gzipped)); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.method, c.path, got, c.want)
		}
	}
	w := get(h, "PUT", "/api/short", nil)
	if allow := w.Header().Get("Allow"); allow != "GET, POST" {
		t.Errorf("Allow: %s", allow)
	}
	w = get(h, "POST", "/api/short", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("12345")) })
	if got := errorCode(t, w); got != "413 too_large" {
		t.Errorf("large body: %s", got)
	}
	w = get(h, "GET", "/api/short", func(r *http.Request) { r.Host = "evil.example" })
	if got := errorCode(t, w); got != "403 foreign_host" {
		t.Errorf("foreign host: %s", got)
	}
	w = get(h, "GET", "/api/short", func(r *http.Request) { r.Header.Set("Denied", "1") })
	if got := errorCode(t, w); got != "403 denied" {
		t.Errorf("denied: %s", got)
	}
	if w = get(h, "GET", "/open", func(r *http.Request) { r.Header.Set("Denied", "1") }); w.Code != 200 {
		t.Errorf("a public route: %d", w.Code)
	}
}

func gzipped(r *http.Request) { r.Header.Set("Accept-Encoding", "br, gzip;q=0.8") }

func TestHandler_headersAndGzip(t *testing.T) {
	h := testHandler()
	for _, path := range []string{"/", "/api/short", "/api/nothing"} {
		header := get(h, "GET", path, nil).Header()
		if csp := header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'self';") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", path, csp)
		}
		if header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: no nosniff", path)
		}
	}
	w := get(h, "GET", "/api/long", gzipped)
	zipped := w.Body.Len()
	z, err := gzip.NewReader(w.Body)
	if err != nil || w.Header().Get("Content-Encoding") != "gzip" {
		t.Fatal(err, w.Header())
	}
	if b, err := io.ReadAll(z); err != nil || len(b) != 5000 || zipped > 200 {
		t.Errorf("%d bytes from %d, %v", len(b), zipped, err)
	}
	if w = get(h, "GET", "/api/short", gzipped); w.Header().Get("Content-Encoding") != "" || w.Body.String() != "short" {
		t.Errorf("a short answer: %v %q", w.Header(), w.Body)
	}
	if w = get(h, "GET", "/api/long", nil); w.Header().Get("Content-Encoding") != "" || w.Body.Len() != 5000 {
		t.Error("gzip without being asked")
	}
	for header, want := range map[string]bool{"gzip": true, "GZIP;q=1": true, "gzip;q=0": false, "gzip;q=x": false, "": false, "deflate, gzip ": true, "xgzip": false} {
		if acceptsGzip(header) != want {
			t.Errorf("accepts %q: %v", header, !want)
		}
	}
}

func TestHandler_inFlightLimit(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	h := NewHandler([]Route{{Method: "GET", Pattern: "/api/wait", Permission: View, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-leave
	})}}, nil, Options{InFlight: 1})
	done := make(chan struct{})
	go func() {
		defer close(done)
		get(h, "GET", "/api/wait", nil)
	}()
	<-entered
	if got := errorCode(t, get(h, "GET", "/api/wait", nil)); got != "503 busy" {
		t.Errorf("got %s", got)
	}
	close(leave)
	<-done
}

// TestHandler_panicAfterBegin cuts the connection instead of ending half an answer well.
func TestHandler_panicAfterBegin(t *testing.T) {
	h := NewHandler([]Route{{Method: "GET", Pattern: "/api/half", Permission: View, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
		panic("broken")
	})}}, nil, Options{})
	server := httptest.NewServer(h)
	defer server.Close()
	response, err := server.Client().Get(server.URL + "/api/half")
	if err == nil {
		_, err = io.ReadAll(response.Body)
		response.Body.Close()
	}
	if err == nil {
		t.Error("half an answer ended well")
	}
}

type node struct {
	Name     string            `json:"name"`
	Children []node            `json:"children,omitempty"`
	Next     *node             `json:"next"`
	Labels   map[string]string `json:"labels"`
	hidden   int
}

func TestSpec(t *testing.T) {
	routes := []Route{{
		Method: "GET", Pattern: "/api/nodes/{id}", Permission: View,
		Doc: &Doc{Summary: "A node.", Answer: node{hidden: 1}, Params: []Param{{Name: "id", Type: "string"}, {Name: "deep", Type: "boolean"}}},
	}}
	route := SpecRoute("1.2.3", routes)
	w := get(NewHandler([]Route{route}, nil, Options{}), "GET", "/api/openapi.json", nil)
	var spec map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &spec); err != nil {
		t.Fatal(err)
	}
	text := w.Body.String()
	for _, want := range []string{
		`"openapi":"3.1.0"`, `"version":"1.2.3"`, `"/api/openapi.json"`, `"in":"path","name":"id","required":true`, `"in":"query","name":"deep"`,
		`"$ref":"#/components/schemas/node"`, `"required":["name","next","labels"]`, `"additionalProperties":{"type":"string"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	if strings.Contains(text, "hidden") {
		t.Error("an unexported field is described")
	}
}

func FuzzGuard(f *testing.F) {
	f.Add("127.0.0.1:80", "http://127.0.0.1")
	f.Add("[::1", "null")
	f.Fuzz(func(t *testing.T, host, origin string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		r.Header.Set("Origin", origin)
		from, ok := strings.CutPrefix(strings.ToLower(origin), "http://")
		if err := (Guard{}).Check(r); err == nil && origin != "" && (!ok || withPort(from, "http") != withPort(strings.ToLower(host), "http")) {
			t.Errorf("host %q let origin %q in", host, origin)
		}
	})
}

// TestHandler_internalErrors finds the whole cause of an internal error in the log under the id that the answer names, and no folder in the answer.
func TestHandler_internalErrors(t *testing.T) {
	var log strings.Builder
	cause := errors.New("read /var/lib/tidemark/engine/datafile-1: disk on fire")
	routes := []Route{
		{Method: "GET", Pattern: "/api/internal", Permission: View, Handler: JSON(func(*http.Request) (any, error) { return nil, cause })},
		{Method: "GET", Pattern: "/api/panic", Permission: View, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(cause.Error()) })},
		{Method: "GET", Pattern: "/api/own", Permission: View, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			WriteJSON(w, http.StatusOK, Explain(r.Context(), cause)+Explain(r.Context(), NotFound("nothing")))
		})},
		{Method: "GET", Pattern: "/api/missing", Permission: View, Handler: JSON(func(*http.Request) (any, error) { return nil, NotFound("no such thing") })},
	}
	h := NewHandler(routes, nil, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, path := range []string{"/api/internal", "/api/panic", "/api/own"} {
		log.Reset()
		w := get(h, "GET", path, nil)
		var body ErrorAnswer
		id := strings.Trim(w.Body.String(), `"`)
		if path != "/api/own" {
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatalf("%s: %s: %v", path, w.Body, err)
			}
			id = body.Error.RequestID
			if w.Code != http.StatusInternalServerError || !strings.Contains(body.Error.Message, id) || strings.Contains(w.Body.String(), "/var/lib") {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
		if len(id) != 16 || strings.Count(log.String(), "request="+id) != 1 || !strings.Contains(log.String(), cause.Error()) || !strings.Contains(log.String(), "path="+path) {
			t.Errorf("%s has the id %q, and the log is %s", path, id, log.String())
		}
	}
	log.Reset()
	if w := get(h, "GET", "/api/missing", nil); log.Len() > 0 || strings.Contains(w.Body.String(), "request_id") {
		t.Errorf("an error that is not the server's: %s, log %s", w.Body, log.String())
	}
}

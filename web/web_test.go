package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func build() fstest.MapFS {
	return fstest.MapFS{
		".gitkeep":              {},
		"index.html":            {Data: []byte("<!doctype html><title>Tidemark</title>")},
		"theme.js":              {Data: []byte("theme")},
		"favicon.svg":           {Data: []byte("<svg/>")},
		"assets/index-abc12.js": {Data: []byte(strings.Repeat("let tide = 1;\n", 500))},
	}
}

func ask(t *testing.T, h http.Handler, method, address string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, address, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, response *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func open(t *testing.T, files fstest.MapFS) http.Handler {
	t.Helper()
	h, err := newHandler(files)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestAddresses(t *testing.T) {
	h := open(t, build())
	for _, c := range []struct {
		address string
		status  int
		kind    string
	}{
		{"/", 200, "text/html; charset=utf-8"},
		{"/hosts", 200, "text/html; charset=utf-8"},
		{"/hosts/12/values", 200, "text/html; charset=utf-8"},
		{"/alerting/media", 200, "text/html; charset=utf-8"},
		{"/storage", 200, "text/html; charset=utf-8"},
		{"/explore?q=up", 200, "text/html; charset=utf-8"},
		{"/favicon.svg", 200, "image/svg+xml"},
		{"/theme.js", 200, "text/javascript; charset=utf-8"},
		{"/assets/index-abc12.js", 200, "text/javascript; charset=utf-8"},
		{"/assets/index-gone.js", 404, "text/plain; charset=utf-8"},
		{"/hosts/app.js", 404, "text/plain; charset=utf-8"},
		{"/.gitkeep", 404, "text/plain; charset=utf-8"},
		{"/api/nothing", 404, "text/plain; charset=utf-8"},
		{"/nowhere", 404, "text/plain; charset=utf-8"},
		{"/../web.go", 404, "text/plain; charset=utf-8"},
	} {
		response := ask(t, h, "GET", c.address)
		if response.StatusCode != c.status || response.Header.Get("Content-Type") != c.kind {
			t.Errorf("GET %s: %d %s, want %d %s", c.address, response.StatusCode, response.Header.Get("Content-Type"), c.status, c.kind)
		}
		if got := response.Header.Get("Content-Security-Policy"); got != Policy {
			t.Errorf("GET %s: policy %q", c.address, got)
		}
	}
}

func TestUnknownView(t *testing.T) {
	h := open(t, build())
	index := text(t, ask(t, h, "GET", "/"))
	typed := ask(t, h, "GET", "/host/db1", "Accept", "text/html,application/xhtml+xml", "If-None-Match", "*")
	if body := text(t, typed); typed.StatusCode != http.StatusNotFound || body != index {
		t.Errorf("a browser got %d %q at an unknown address, want 404 and the page", typed.StatusCode, body)
	}
	for _, address := range []string{"/api/nothing", "/gone.js"} {
		if got := ask(t, h, "GET", address, "Accept", "text/html"); got.StatusCode != http.StatusNotFound || text(t, got) == index {
			t.Errorf("GET %s: %d with the page, want an error", address, got.StatusCode)
		}
	}
}

func TestPolicyForbidsInline(t *testing.T) {
	if strings.Contains(Policy, "unsafe") || !strings.HasPrefix(Policy, "default-src 'self'") {
		t.Errorf("policy %q allows too much", Policy)
	}
}

func TestCaching(t *testing.T) {
	h := open(t, build())
	asset := ask(t, h, "GET", "/assets/index-abc12.js")
	if got := asset.Header.Get("Cache-Control"); !strings.Contains(got, "immutable") {
		t.Errorf("a hashed asset has Cache-Control %q, want immutable", got)
	}
	index := ask(t, h, "GET", "/")
	if got := index.Header.Get("Cache-Control"); got != "no-cache" {
		t.Errorf("index.html has Cache-Control %q, want no-cache", got)
	}
	again := ask(t, h, "GET", "/hosts", "If-None-Match", `"other", W/`+index.Header.Get("ETag"))
	if again.StatusCode != http.StatusNotModified || text(t, again) != "" {
		t.Errorf("a known ETag gave %d with a body, want 304 without", again.StatusCode)
	}
}

func TestGzip(t *testing.T) {
	h := open(t, build())
	const asset = "/assets/index-abc12.js"
	plain := ask(t, h, "GET", asset)
	packed := ask(t, h, "GET", asset, "Accept-Encoding", "br, gzip;q=0.8")
	if plain.Header.Get("Content-Encoding") != "" || packed.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("encodings %q and %q, want none and gzip", plain.Header.Get("Content-Encoding"), packed.Header.Get("Content-Encoding"))
	}
	if plain.Header.Get("ETag") == packed.Header.Get("ETag") {
		t.Error("both forms have the same ETag")
	}
	reader, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	if string(body) != text(t, plain) {
		t.Error("the compressed form holds something else")
	}
	if refused := ask(t, h, "GET", asset, "Accept-Encoding", "gzip;q=0"); refused.Header.Get("Content-Encoding") != "" {
		t.Error("gzip was sent to one who refuses it")
	}
}

func TestMethods(t *testing.T) {
	h := open(t, build())
	if post := ask(t, h, "POST", "/"); post.StatusCode != http.StatusMethodNotAllowed || post.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST / gave %d, Allow %q", post.StatusCode, post.Header.Get("Allow"))
	}
	head := ask(t, h, "HEAD", "/")
	if head.StatusCode != 200 || text(t, head) != "" || head.Header.Get("Content-Length") == "0" {
		t.Errorf("HEAD / gave %d, length %s", head.StatusCode, head.Header.Get("Content-Length"))
	}
}

func TestNotBuilt(t *testing.T) {
	h := open(t, fstest.MapFS{".gitkeep": {}})
	response := ask(t, h, "GET", "/hosts")
	if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text(t, response), "make build") {
		t.Errorf("without a build: %d, want 503 that names make build", response.StatusCode)
	}
}

func TestEmbedded(t *testing.T) {
	// Either the page or the note that it was not built; never a panic, never an empty answer.
	response := ask(t, Handler(), "GET", "/")
	if body := text(t, response); !strings.Contains(body, "Tidemark") {
		t.Errorf("GET / gave %d %q", response.StatusCode, body)
	}
}

// Messages of Zabbix's webhook scripts link to this address.
func TestEventPage(t *testing.T) {
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/tr_events.php?triggerid=1&eventid=2", nil))
	if w.Code != http.StatusFound || w.Header().Get("Location") != "/problems?show=all" {
		t.Errorf("%d to %s, want 302 to /problems?show=all", w.Code, w.Header().Get("Location"))
	}
}

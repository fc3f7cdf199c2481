// Package web serves the page that is built from web/app. The build lies in web/dist and is embedded in the binary.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

// all: takes dist/.gitkeep too, so that the package compiles before the page was built.
//
//go:embed all:dist
var dist embed.FS

// Policy is the Content-Security-Policy of the page: nothing from elsewhere, no inline script or style.
const Policy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// notBuilt is what is served when the binary was compiled without the page.
const notBuilt = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Tidemark</title></head>
<body><h1>The page was not built</h1>
<p>This binary holds no page. Run <code>make build</code>, which builds the page and the binary, and start it again.</p>
<p>The server itself works: see <a href="/api/overview">/api/overview</a>, <a href="/metrics">/metrics</a>.</p>
</body></html>
`

// minGzip is the size in bytes from which a file is worth compressing.
const minGzip = 1024

// Handler returns a handler for the page: its files, and index.html for every address of a view. It answers GET and
// HEAD only. It panics when the embedded build cannot be read, which only a broken binary can cause.
func Handler() http.Handler {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(fmt.Sprintf("web: open the embedded build: %v", err))
	}
	h, err := newHandler(files)
	if err != nil {
		panic(fmt.Sprintf("web: read the embedded build: %v", err))
	}
	return h
}

// file is one embedded file, ready to be sent.
type file struct {
	body    []byte
	gzipped []byte // nil when it is not worth it
	kind    string
	etag    string
	hashed  bool // its name changes with its content
}

type handler struct {
	files map[string]*file
	index *file // nil when the page was not built
}

func newHandler(files fs.FS) (*handler, error) {
	h := &handler{files: make(map[string]*file)}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(path.Base(name), ".") {
			return err
		}
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		f, err := newFile(name, body)
		if err != nil {
			return fmt.Errorf("compress %s: %w", name, err)
		}
		h.files["/"+name] = f
		return nil
	})
	if err != nil {
		return nil, err
	}
	h.index = h.files["/index.html"]
	return h, nil
}

func newFile(name string, body []byte) (*file, error) {
	sum := sha256.Sum256(body)
	f := &file{
		body:   body,
		kind:   kindOf(name),
		etag:   `"` + hex.EncodeToString(sum[:12]) + `"`,
		hashed: strings.HasPrefix(name, "assets/"),
	}
	if len(body) < minGzip {
		return f, nil
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if packed.Len() < len(body)*9/10 {
		f.gzipped = packed.Bytes()
	}
	return f, nil
}

// kindOf does not ask the machine's own tables, which differ, for the kinds that the page is made of.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	if kind := mime.TypeByExtension(path.Ext(name)); kind != "" {
		return kind
	}
	return "application/octet-stream"
}

// ServeHTTP sends a file, index.html for a view, or 404.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the page answers GET and HEAD only", http.StatusMethodNotAllowed)
		return
	}
	secure(w.Header())
	if r.URL.Path == eventPage {
		http.Redirect(w, r, "problems?show=all", http.StatusFound)
		return
	}
	f, ok := h.files[r.URL.Path]
	if !ok && isView(r.URL.Path) {
		f, ok = h.index, true
	}
	switch {
	case !ok && h.index != nil && wantsPage(r):
		// The page itself says that there is no such view, and shows the way back.
		h.index.serve(w, r, http.StatusNotFound)
	case !ok:
		http.Error(w, "there is no such file", http.StatusNotFound)
	case f == nil:
		w.Header().Set("Content-Type", kindOf("index.html"))
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusServiceUnavailable)
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(notBuilt)) // The reader may be gone; there is nobody left to tell.
		}
	default:
		f.serve(w, r, http.StatusOK)
	}
}

func secure(header http.Header) {
	header.Set("Content-Security-Policy", Policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
}

// views are the first words of the addresses that the page itself understands.
var views = map[string]bool{
	"": true, "login": true, "welcome": true, "account": true, "users": true, "audit": true, "problems": true, "hosts": true, "items": true, "requests": true, "explore": true, "dashboards": true,
	"server": true, "storage": true, "alerting": true, "configuration": true,
}

// eventPage is where the messages of Zabbix's webhook scripts link to.
const eventPage = "/tr_events.php"

// isView tells whether an address is one of the page's own. A view's address has no file extension, so that a missing
// script is an error and not a page.
func isView(address string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(address, "/"), "/")
	// Names of hosts and templates may have dots.
	return views[first] && (first == "configuration" || path.Ext(address) == "")
}

// wantsPage tells whether somebody typed an address into a browser. A missing file, and anything under /api, stays an error.
func wantsPage(r *http.Request) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return first != "api" && path.Ext(r.URL.Path) == "" && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// serve sends the file with status, or 304 to who has it already.
func (f *file) serve(w http.ResponseWriter, r *http.Request, status int) {
	header := w.Header()
	header.Set("Content-Type", f.kind)
	header.Set("Cache-Control", "no-cache")
	if f.hashed {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	etag, body := f.etag, f.body
	if f.gzipped != nil {
		header.Set("Vary", "Accept-Encoding")
		if acceptsGzip(r.Header.Get("Accept-Encoding")) {
			// The two forms of a file are different things to a cache.
			etag, body = strings.TrimSuffix(f.etag, `"`)+`-gzip"`, f.gzipped
			header.Set("Content-Encoding", "gzip")
		}
	}
	header.Set("ETag", etag)
	if status == http.StatusOK && matches(r.Header.Get("If-None-Match"), etag) {
		header.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // The reader may be gone; there is nobody left to tell.
	}
}

// acceptsGzip reads Accept-Encoding: gzip or * without q=0.
func acceptsGzip(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		name, parameter, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name != "gzip" && name != "*" {
			continue
		}
		value := strings.TrimPrefix(strings.TrimSpace(parameter), "q=")
		return strings.Trim(value, "0.") != "" || value == ""
	}
	return false
}

func matches(header, etag string) bool {
	for part := range strings.SplitSeq(header, ",") {
		part = strings.TrimPrefix(strings.TrimSpace(part), "W/")
		if part == etag || part == "*" {
			return true
		}
	}
	return false
}

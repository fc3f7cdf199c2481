package api

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// gzipFromBytes is the size from which compressing an answer pays.
const gzipFromBytes = 1024

var gzipWriters = sync.Pool{New: func() any {
	// BestSpeed: a chart of 1 MB shrinks 6 times in a few milliseconds, and the level above gains little.
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic("api: gzip has no level BestSpeed: " + err.Error())
	}
	return w
}}

// compressed sends answers with gzip to callers that accept it.
func compressed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if !acceptsGzip(r.Header.Get("Accept-Encoding")) {
			next.ServeHTTP(w, r)
			return
		}
		c := &gzipWriter{ResponseWriter: w}
		next.ServeHTTP(c, r) // after a panic what was held back is not sent
		c.close()
	})
}

// acceptsGzip reads an Accept-Encoding header: gzip must be named, and not with the weight zero.
func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, parameter, _ := strings.Cut(strings.TrimSpace(part), ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		weight, ok := strings.CutPrefix(strings.TrimSpace(parameter), "q=")
		if !ok {
			return true
		}
		q, err := strconv.ParseFloat(weight, 64)
		return err == nil && q > 0
	}
	return false
}

// gzipWriter holds the first bytes back until it is known whether compressing pays.
type gzipWriter struct {
	http.ResponseWriter
	status int
	held   []byte
	gzip   *gzip.Writer
	plain  bool
}

// WriteHeader keeps the status until the first bytes go out.
func (w *gzipWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write holds back, compresses or passes on.
func (w *gzipWriter) Write(p []byte) (int, error) {
	if w.gzip != nil {
		return w.gzip.Write(p)
	}
	if w.plain {
		return w.ResponseWriter.Write(p)
	}
	if len(w.held)+len(p) < gzipFromBytes {
		w.held = append(w.held, p...)
		return len(p), nil
	}
	if err := w.begin(true); err != nil {
		return 0, err
	}
	return w.Write(p)
}

// begin sends the header and what was held back.
func (w *gzipWriter) begin(large bool) error {
	header := w.Header()
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.plain = !large || header.Get("Content-Encoding") != ""
	if !w.plain {
		header.Set("Content-Encoding", "gzip")
		header.Del("Content-Length")
	}
	w.ResponseWriter.WriteHeader(w.status)
	held := w.held
	w.held = nil
	if w.plain {
		_, err := w.ResponseWriter.Write(held)
		return err
	}
	w.gzip = gzipWriters.Get().(*gzip.Writer)
	w.gzip.Reset(w.ResponseWriter)
	_, err := w.gzip.Write(held)
	return err
}

// close ends the answer. Errors mean that the caller went away.
func (w *gzipWriter) close() {
	if w.gzip != nil {
		_ = w.gzip.Close()
		w.gzip.Reset(nil)
		gzipWriters.Put(w.gzip)
		w.gzip = nil
		return
	}
	if !w.plain && (w.status != 0 || len(w.held) > 0) {
		_ = w.begin(false)
	}
}

// Unwrap gives http.ResponseController the writer below.
func (w *gzipWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

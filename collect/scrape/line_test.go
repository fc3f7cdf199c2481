package scrape

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/config"
)

// scripted answers each request with what answer writes, and closes the connection when it returns false. It returns its address and how many
// connections were made.
func scripted(t *testing.T, answer func(nc net.Conn, path string) bool) (string, func() int) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	made := 0
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			made++
			mu.Unlock()
			serving.Go(func() {
				defer nc.Close()
				for in := bufio.NewReader(nc); ; {
					r, err := http.ReadRequest(in)
					if err != nil || !answer(nc, r.URL.Path) {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { ln.Close(); serving.Wait() })
	return ln.Addr().String(), func() int { mu.Lock(); defer mu.Unlock(); return made }
}

// TestLine compares the line of a target with net/http's client, over answers of all kinds, each asked for twice.
func TestLine(t *testing.T) {
	ok := func(text string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	}
	answers := map[string]string{
		"/plain": ok("a 1\n"), "/chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na 1\r\n1\r\n\n\r\n0\r\n\r\n", "/end": "HTTP/1.0 200 OK\r\n\r\na 1\n$",
		"/close": "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\na 1\n", "/hints": "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok("a 1\n"),
		"/error": "HTTP/1.1 500 Broken\r\nContent-Length: 2\r\n\r\nno", "/large": ok(strings.Repeat("a 1\n", 1000)), "/there": "HTTP/1.1 302 Found\r\nLocation: /plain\r\nContent-Length: 0\r\n\r\n",
		"/nowhere": "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", "/nothing": "$", "/nonsense": "what\r\n\r\n$", "/cut": "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na 1\n$", "/packed": "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\na 1\n",
		"/more": ok("a 1\n") + "more", "/late": ok("a 1\n") + "$", "/silent": "",
	}
	address, _ := scripted(t, func(nc net.Conn, path string) bool {
		text, closes := strings.CutSuffix(answers[path], "$")
		_, _ = io.WriteString(nc, text)
		return !closes
	})
	c, err := newClient(&config.ScrapeHTTP{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.transport.CloseIdleConnections)
	ask := func(l *line, path string, limit time.Duration) string {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		body, kind, err := c.read(r, l, 1000, nil)
		return fmt.Sprintf("%q %q %v", body, kind, err)
	}
	for path := range answers {
		limit := time.Minute
		if path == "/silent" {
			limit = 50 * time.Millisecond
		}
		l := &line{dialer: c.dialer, address: address}
		for range 2 {
			want := strings.ReplaceAll(ask(nil, path, limit), "net/http: HTTP/1.x transport connection broken: ", "") // the library's own words
			if got := ask(l, path, limit); got != want {
				t.Errorf("%s:\n%s, want\n%s", path, got, want)
			}
		}
		l.close()
	}
}

// TestLine_kept: a connection serves scrape after scrape, and one that the target has closed meanwhile is made again.
func TestLine_kept(t *testing.T) {
	var asked atomic.Int32
	address, made := scripted(t, func(nc net.Conn, _ string) bool {
		_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na 1\n")
		return asked.Add(1) != 3
	})
	c, err := newClient(&config.ScrapeHTTP{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &line{dialer: c.dialer, address: address}
	defer l.close()
	for range 6 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if body, _, err := c.read(r, l, 1000, nil); string(body) != "a 1\n" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
	}
	if n := made(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.read(r, l, 1000, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a scrape that is not wanted any more: %v", err)
	}
}

// TestLine_header: headers without an end are not kept.
func TestLine_header(t *testing.T) {
	address, _ := scripted(t, func(nc net.Conn, _ string) bool {
		_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\n")
		for {
			if _, err := io.WriteString(nc, "X: "+strings.Repeat("y", 60_000)+"\r\n"); err != nil {
				return false
			}
		}
	})
	c, err := newClient(&config.ScrapeHTTP{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &line{dialer: c.dialer, address: address}
	defer l.close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.read(r, l, 1000, nil); err == nil {
		t.Error("an answer without an end was taken")
	}
}

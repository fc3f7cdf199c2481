package httpagent

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/collect/poller"
	"tidemark/internal/guard"
	"tidemark/model"
)

// called makes checks as a poller does, together.
func called(t *testing.T, c *Checker, limit time.Duration, items []*model.Item) []poller.Result {
	t.Helper()
	calls := make([]*poller.Call, len(items))
	for i, item := range items {
		calls[i] = &poller.Call{Tasks: []*poller.Task{{Item: item}}, Results: make([]poller.Result, 1), Deadline: time.Now().Add(limit)}
	}
	ended := make(chan *poller.Call, len(calls))
	c.Call(context.Background(), calls, func(list []*poller.Call) {
		for _, call := range list {
			ended <- call
		}
	})
	for range calls {
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("a call does not end")
		}
	}
	results := make([]poller.Result, len(calls))
	for i, call := range calls {
		results[i] = call.Results[0]
	}
	return results
}

// raw are answers as they come; a | is a pause, a $ at the end closes the connection.
var raw = []string{
	"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 200 OK\r\nContent-|Length: 3\r\n|\r\na|bc", "HTTP/1.1 200\r\ncontent-length:3\r\n\r\nabc",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3|\r\na|bc\r|\n0\r\n|\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nX: y\r\n\r\n",
	"HTTP/1.1 200 OK\r\n\r\nto the |end$", "HTTP/1.0 200 OK\r\nServer: old\r\n\r\nto the end$", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n1$",
	"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno",
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc$", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc$",
	"nonsense\r\n\r\n$", "$", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n$", "HTTP/1.1 200 OK\r\nA b: c\r\nContent-Length: 1\r\n\r\n1$", "HTTP/1.1 2x0 OK\r\n\r\n$", "HTTP/2.0 200 OK\r\nContent-Length: 1\r\n\r\n1$",
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1 and more",
	"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 1\r\n\r\n1", "HTTP/1.1 200 OK\nContent-Length: 1\n\n1", "HTTP/1.1 302 Found\r\nLocation: /0\r\nContent-Length: 1\r\n\r\n1",
	"HTTP/1.1 302 Found\r\nContent-Length: 1\r\n\r\n1", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\n1", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n$",
	"HTTP/1.0 200 \n\r\nContent-Length:0\r\n\r\n0$", "HTTP/1.1 200 OK\rx\r\nContent-Length: 1\r\n\r\n1",
	"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + strings.Repeat("x", 300_000), "HTTP/1.1 200 OK\r\nX-A: b\r\nx-a: c\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{\"a\":1}",
}

// rawSite answers /n with the answer of that number.
func rawSite(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer nc.Close()
				var request strings.Builder
				one := make([]byte, 1)
				for {
					if _, err := nc.Read(one); err != nil {
						return
					}
					if request.WriteByte(one[0]); !strings.HasSuffix(request.String(), "\r\n\r\n") {
						continue
					}
					var n int
					_, _ = fmt.Sscanf(request.String(), "GET /%d", &n)
					request.Reset()
					answer, closes := strings.CutSuffix(raw[n], "$")
					for part := range strings.SplitSeq(answer, "|") {
						if part != answer {
							time.Sleep(8 * time.Millisecond) //nolint:forbidigo // so that a round sees the part alone; slower is as good
						}
						_, _ = io.WriteString(nc, part)
					}
					if closes {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { ln.Close(); serving.Wait() })
	return "http://" + ln.Addr().String()
}

// TestCall compares calls with Check, which is the simple version, over answers and requests of all kinds.
func TestCall(t *testing.T) {
	s := httptest.NewServer(site(t))
	defer s.Close()
	strange := rawSite(t)
	var items []*model.Item
	add := func(q *model.HTTPRequest, change ...func(*model.Collect)) {
		q.URL = strings.Replace(q.URL, "@", s.URL, 1)
		c := &model.Collect{HTTP: q}
		for _, f := range change {
			f(c)
		}
		items = append(items, &model.Item{Key: "k", Collect: c})
	}
	for n := range raw {
		add(get(fmt.Sprintf("%s/%d", strange, n)))
		add(get(fmt.Sprintf("%s/%d", strange, n), func(q *model.HTTPRequest) { q.Retrieve, q.StatusCodes, q.FollowRedirects = "BOTH", "", false }))
		add(get(fmt.Sprintf("%s/%d", strange, n), func(q *model.HTTPRequest) { q.Retrieve, q.OutputJSON = "BOTH", true }))
	}
	for _, path := range []string{
		"@/echo?a=1#part", "@/json", "@/latin", "@/status/404", "@/hop/3", "@/away", "@/basic", "@/bomb", "@", " " + s.Listener.Addr().String() + "/echo ",
		"http://u:p@" + s.Listener.Addr().String() + "/basic", "http://localhost:" + fmt.Sprint(s.Listener.Addr().(*net.TCPAddr).Port) + "/echo", "http://169.254.169.254/", "no address\x00", "http://127.0.0.1:1/", "https://127.0.0.1:1/",
	} {
		add(get(path))
	}
	add(get("@/echo", func(q *model.HTTPRequest) {
		q.Query = []model.Pair{{Name: "b c", Value: "ä&"}, {Name: "d"}}
		q.Headers = []model.Pair{{Name: "X-A", Value: "1"}, {Name: "x-a", Value: "2"}, {Name: "Host", Value: "other"}, {Name: " ", Value: "x"}}
	}))
	for _, name := range []string{"Connection", "Accept-Encoding", "Range", "bad name", "User-Agent", "X-A"} {
		for _, value := range []string{"close", "a\x01b", "a\r\nb"} {
			add(get("@/echo", func(q *model.HTTPRequest) { q.Headers = []model.Pair{{Name: name, Value: value}} }))
		}
	}
	add(get("@/echo", func(q *model.HTTPRequest) { q.Method, q.Posts = "POST", "x" }))
	add(get("@/echo", func(q *model.HTTPRequest) { q.CertFile = "missing" }))
	add(get("@/echo", func(q *model.HTTPRequest) { q.Proxy = s.URL }))
	for _, kind := range []string{"BASIC", "DIGEST", "NTLM", "KERBEROS", "other"} {
		add(get("@/basic"), func(c *model.Collect) { c.AuthType, c.Username, c.Password = kind, "u", "p:ä" })
		add(get("@/digest"), func(c *model.Collect) { c.AuthType, c.Username, c.Password = kind, "u", "p" })
	}
	items = append(items, &model.Item{Key: "k"}, &model.Item{Key: "k", Collect: &model.Collect{}})
	rules := guard.New(guard.Options{Denied: []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16")}})
	c, simple := New(Options{MaxBodyBytes: 1 << 20, Rules: rules}), New(Options{MaxBodyBytes: 1 << 20, Rules: rules})
	defer c.Close()
	defer simple.Close()
	compare := func(limit time.Duration, items []*model.Item) {
		first, second := called(t, c, limit, items), called(t, c, limit, items)
		for i, item := range items {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			want := make([]poller.Result, 1)
			simple.Check(ctx, []*poller.Task{{Item: item}}, want)
			cancel()
			for _, got := range []poller.Result{first[i], second[i]} {
				if g, w := show(got), show(want[0]); g != w {
					t.Errorf("%+v:\n%s, want\n%s", item.Collect.HTTP, g, w)
				}
			}
		}
	}
	compare(time.Minute, items)
	items = nil
	add(get("@/slow"))
	compare(200*time.Millisecond, items)
}

// show is a result without the time that net/http's server puts into its headers.
func show(r poller.Result) string {
	text := string(r.Text)
	if at := strings.Index(text, "Date: "); at >= 0 && len(text) > at+37 {
		text = text[:at] + text[at+37:]
	}
	return fmt.Sprintf("%d %.2000q", r.Outcome, text)
}

// Plain checks of one site share connections, and what was seen to need net/http is not asked twice again.
func TestCall_connections(t *testing.T) {
	var made, asked atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path == "/there" {
			http.Redirect(w, r, "/", http.StatusFound)
		}
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	c := New(Options{})
	defer c.Close()
	item := func(path string) []*model.Item {
		return []*model.Item{{Key: "k", Collect: &model.Collect{HTTP: get(s.URL + path)}}}
	}
	for range 5 {
		if r := called(t, c, time.Minute, item("/"))[0]; r.Outcome != poller.Value {
			t.Errorf("%s", r.Text)
		}
	}
	if n := made.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	there := item("/there")
	for i, want := range []int32{3, 2, 2} {
		asked.Store(0)
		if r := called(t, c, time.Minute, there)[0]; r.Outcome != poller.Value || asked.Load() != want {
			t.Errorf("time %d: %d requests, want %d; %s", i, asked.Load(), want, r.Text)
		}
	}
}

// FuzzFrame gives answers bit by bit, and reads what is whole with net/http's reader: it must end where frame says.
func FuzzFrame(f *testing.F) {
	for _, answer := range raw {
		if len(answer) < 1000 {
			f.Add([]byte(answer), 7)
		}
	}
	f.Fuzz(func(t *testing.T, answer []byte, step int) {
		fr := frame{}
		for n := 0; n <= len(answer); n += max(1, min(step, len(answer))) {
			end, state := fr.whole(answer[:n], false)
			if state == odd {
				return
			}
			if state == partly {
				continue
			}
			if end > n || end < fr.head {
				t.Fatalf("the answer ends at %d of %d", end, n)
			}
			r, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), nil)
			if err != nil {
				return // It is left to Check.
			}
			body, err := io.ReadAll(r.Body)
			if err == nil && fr.size >= 0 && len(body) != fr.size {
				t.Fatalf("%d bytes of body, want %d", fr.size, len(body))
			}
			q := &model.HTTPRequest{Retrieve: "BODY", StatusCodes: "200-299"}
			if got, ok := fr.plainValue(q, answer[:end], 1<<20); ok && fr.size != toTheEnd {
				if err != nil {
					t.Fatalf("%q of an answer that net/http refuses: %v", got.Text, err)
				}
				want, err := (&Answer{Status: r.StatusCode, Body: toUTF8(body, r.Header.Get("Content-Type"))}).checked(q)
				if err != nil {
					want = []byte(err.Error())
				}
				if !bytes.Equal(got.Text, want) {
					t.Fatalf("%q, want %q", got.Text, want)
				}
			}
			return
		}
	})
}

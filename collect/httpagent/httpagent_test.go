package httpagent

import (
	"compress/gzip"
	"context"
	"crypto/md5" //nolint:gosec // digest authentication
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"tidemark/collect/poller"
	"tidemark/internal/guard"
	"tidemark/model"
)

// site is a server with a page for each case.
func site(t *testing.T) http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s %s %s", r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), r.Host, strings.Join(r.Header["X-A"], "|"), body)
	})
	m.HandleFunc("/json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Date", "never")
		_, _ = io.WriteString(w, "{\"a\": 1}\n")
	})
	m.HandleFunc("/latin", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=iso-8859-1")
		_, _ = w.Write([]byte{'a', 0xe4})
	})
	m.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		var code int
		_, _ = fmt.Sscan(r.PathValue("code"), &code)
		w.WriteHeader(code)
	})
	m.HandleFunc("/hop/{n}", func(w http.ResponseWriter, r *http.Request) {
		var n int
		_, _ = fmt.Sscan(r.PathValue("n"), &n)
		if n == 0 {
			_, _ = io.WriteString(w, "there")
			return
		}
		http.Redirect(w, r, fmt.Sprintf("/hop/%d", n-1), http.StatusFound)
	})
	m.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/secret", http.StatusFound)
	})
	m.HandleFunc("/basic", func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		fmt.Fprintf(w, "%s:%s", user, password)
	})
	m.HandleFunc("/digest", digestPage)
	m.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	m.HandleFunc("/bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write(make([]byte, 4<<20))
		_ = z.Close()
	})
	return m
}

// digestPage takes user u with password p, as RFC 7616 has it for MD5 with qop=auth.
func digestPage(w http.ResponseWriter, r *http.Request) {
	fields := map[string]string{}
	for _, m := range regexp.MustCompile(`(\w+)="?([^",]*)`).FindAllStringSubmatch(strings.TrimPrefix(r.Header.Get("Authorization"), "Digest "), -1) {
		fields[m[1]] = m[2]
	}
	sum := func(parts ...string) string {
		s := md5.Sum([]byte(strings.Join(parts, ":"))) //nolint:gosec // as above
		return hex.EncodeToString(s[:])
	}
	body, _ := io.ReadAll(r.Body)
	want := sum(sum("u", "here", "p"), "n1", fields["nc"], fields["cnonce"], "auth", sum(r.Method, "/digest"))
	if fields["response"] != want {
		w.Header().Set("WWW-Authenticate", `Digest realm="here", nonce="n1", qop="auth", algorithm=MD5`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	fmt.Fprintf(w, "in with %s", body)
}

func get(path string, change ...func(*model.HTTPRequest)) *model.HTTPRequest {
	q := &model.HTTPRequest{URL: path, Method: "GET", PostType: "RAW", StatusCodes: "200", FollowRedirects: true, Retrieve: "BODY"}
	for _, f := range change {
		f(q)
	}
	return q
}

func TestChecker(t *testing.T) {
	s := httptest.NewServer(site(t))
	defer s.Close()
	c := New(Options{MaxBodyBytes: 1 << 20, Rules: guard.New(guard.Options{Denied: []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16")}})})
	defer c.Close()
	host := strings.TrimPrefix(s.URL, "http://")
	f := func(collect model.Collect, outcome poller.Outcome, want string) {
		t.Helper()
		collect.HTTP.URL = strings.Replace(collect.HTTP.URL, "@", s.URL, 1)
		task := &poller.Task{Item: &model.Item{Key: "k", Collect: &collect}}
		results := make([]poller.Result, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c.Check(ctx, []*poller.Task{task}, results)
		if results[0].Outcome != outcome || string(results[0].Text) != want {
			t.Errorf("%s: %d %q, want %d %q", collect.HTTP.URL, results[0].Outcome, results[0].Text, outcome, want)
		}
	}
	ok := func(q *model.HTTPRequest, want string) { t.Helper(); f(model.Collect{HTTP: q}, poller.Value, want) }
	bad := func(q *model.HTTPRequest, want string) {
		t.Helper()
		f(model.Collect{HTTP: q}, poller.NotSupported, want)
	}
	ok(get("@/echo?a=1", func(q *model.HTTPRequest) {
		q.Query = []model.Pair{{Name: "b c", Value: "ä&"}, {Name: "d"}}
		q.Headers = []model.Pair{{Name: "X-A", Value: "1"}, {Name: "x-a", Value: "2"}, {Name: "Host", Value: "other"}, {Name: " ", Value: "x"}}
	}), "GET /echo?a=1&b+c=%C3%A4%26&d  other 1|2 ")
	ok(get("@/echo", func(q *model.HTTPRequest) { q.Method, q.PostType, q.Posts = "POST", "JSON", `{"x":1}` }), "POST /echo application/json "+host+`  {"x":1}`)
	ok(get("@/echo", func(q *model.HTTPRequest) {
		q.Method, q.Posts, q.Headers = "PUT", "a=b", []model.Pair{{Name: "Content-Type", Value: "text/x"}}
	}), "PUT /echo text/x "+host+"  a=b")
	ok(get("@/json"), "{\"a\": 1}\n")
	ok(get("@/json", func(q *model.HTTPRequest) { q.OutputJSON = true }), `{"body":{"a":1}}`)
	ok(get("@/json", func(q *model.HTTPRequest) { q.OutputJSON, q.Retrieve = true, "BOTH" }),
		`{"header":{"Content-Length":"9","Content-Type":"application/json; charset=utf-8","Date":"never"},"body":{"a":1}}`)
	ok(get("@/json", func(q *model.HTTPRequest) { q.Retrieve, q.Method = "HEADERS", "HEAD" }),
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Type: application/json; charset=utf-8\r\nDate: never\r\n\r\n")
	ok(get("@/latin"), "aä")
	ok(get("@/latin", func(q *model.HTTPRequest) { q.OutputJSON = true }), `{"body":"aä"}`)
	ok(get("@/status/404", func(q *model.HTTPRequest) { q.StatusCodes = "200, 400-410" }), "")
	ok(get("@/status/500", func(q *model.HTTPRequest) { q.StatusCodes = "" }), "")
	bad(get("@/status/404"), `response code 404 did not match any of the required status codes "200"`)
	ok(get("@/hop/10"), "there")
	bad(get("@/hop/11"), "more than 10 redirects")
	bad(get("@/hop/1", func(q *model.HTTPRequest) { q.FollowRedirects = false }), `response code 302 did not match any of the required status codes "200"`)
	bad(get("@/away"), "checks must not reach 169.254.169.254: 169.254.0.0/16 is in collect.denied_networks")
	bad(get("ftp://a/"), `"ftp://a/" is no address; expected http:// or https://`)
	bad(get("@/bomb"), "the answer has more than 1048576 bytes")
	bad(get("@/echo", func(q *model.HTTPRequest) { q.Headers = []model.Pair{{Name: "A", Value: "b\r\nC: d"}} }), "header A holds a line break")
	f(model.Collect{HTTP: get("@/basic"), AuthType: "BASIC", Username: "u", Password: "p"}, poller.Value, "u:p")
	f(model.Collect{HTTP: get("@/digest", func(q *model.HTTPRequest) { q.Method, q.Posts = "POST", "data" }), AuthType: "DIGEST", Username: "u", Password: "p"}, poller.Value, "in with data")
	f(model.Collect{HTTP: get("@/digest"), AuthType: "DIGEST", Username: "u", Password: "q"}, poller.NotSupported, `response code 401 did not match any of the required status codes "200"`)
	f(model.Collect{HTTP: get("@/basic"), AuthType: "KERBEROS"}, poller.NotSupported, "authentication of type KERBEROS is not made; expected NONE, BASIC, DIGEST or NTLM")
	f(model.Collect{HTTP: get("@/basic"), AuthType: "X"}, poller.NotSupported, "authentication of type X is not known; expected NONE, BASIC, DIGEST or NTLM")
	ok(get("http://nowhere.invalid/echo", func(q *model.HTTPRequest) { q.Proxy = host }), "GET /echo  nowhere.invalid  ")

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	results := make([]poller.Result, 1)
	c.Check(ctx, []*poller.Task{{Item: &model.Item{Collect: &model.Collect{HTTP: get(s.URL + "/slow")}}}}, results)
	if got := string(results[0].Text); !strings.HasPrefix(got, "the server did not answer in time") {
		t.Errorf("a slow page: %s", got)
	}
}

func TestChecker_tls(t *testing.T) {
	s := httptest.NewTLSServer(site(t))
	defer s.Close()
	c := New(Options{Files: fstest.MapFS{"bad.pem": {Data: []byte("x")}}})
	defer c.Close()
	f := func(change func(*model.HTTPRequest), want string) {
		t.Helper()
		results := make([]poller.Result, 1)
		q := get(s.URL + "/hop/0")
		change(q)
		c.Check(t.Context(), []*poller.Task{{Item: &model.Item{Collect: &model.Collect{HTTP: q}}}}, results)
		if got := string(results[0].Text); !strings.Contains(got, want) {
			t.Errorf("%+v: %s, want %s", q, got, want)
		}
	}
	f(func(*model.HTTPRequest) {}, "there")
	f(func(q *model.HTTPRequest) { q.VerifyHost = true }, "there") // The certificate has this address.
	f(func(q *model.HTTPRequest) { q.VerifyPeer = true }, "signed by unknown authority")
	f(func(q *model.HTTPRequest) { q.VerifyPeer, q.VerifyHost = true, true }, "signed by unknown authority")
	f(func(q *model.HTTPRequest) {
		q.URL, q.VerifyHost = strings.Replace(q.URL, "127.0.0.1", "localhost", 1), true
	}, "localhost")
	f(func(q *model.HTTPRequest) { q.CertFile = "none.pem" }, `file "none.pem" is not in the server's folder`)
	f(func(q *model.HTTPRequest) { q.CertFile = "../secret" }, "is not in the server's folder")
	f(func(q *model.HTTPRequest) { q.CertFile = "bad.pem" }, "certificate bad.pem: ")
}

// TestChecker_ntlm has the exchange of NTLM: three requests over one connection, which is closed behind the check. What a real server makes of the last
// message is the library's matter.
func TestChecker_ntlm(t *testing.T) {
	// A challenge with the least fields: no target name, flags for Unicode and NTLM, eight bytes of challenge, an empty list of targets.
	challenge := append([]byte("NTLMSSP\x00\x02\x00\x00\x00\x00\x00\x00\x00\x38\x00\x00\x00\x01\x02\x08\x00"), make([]byte, 8+8)...)
	challenge = append(challenge, 4, 0, 4, 0, 56, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	var mu sync.Mutex
	var from []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		from = append(from, r.RemoteAddr)
		message, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(r.Header.Get("Authorization"), "NTLM "))
		body, _ := io.ReadAll(r.Body)
		switch {
		case len(message) == 0:
			w.Header().Set("WWW-Authenticate", "NTLM")
			w.WriteHeader(http.StatusUnauthorized)
		case message[8] == 1:
			w.Header().Set("WWW-Authenticate", "NTLM "+base64.StdEncoding.EncodeToString(challenge))
			w.WriteHeader(http.StatusUnauthorized)
		default:
			fmt.Fprintf(w, "type %d user %t %s", message[8], strings.Contains(string(message), "u\x00s\x00e\x00r\x00"), body)
		}
	}))
	defer s.Close()
	c := New(Options{})
	defer c.Close()
	q := Query{Request: get(s.URL, func(q *model.HTTPRequest) { q.Method, q.Posts = "POST", "data" }), AuthType: "NTLM", Username: `DOM\user`, Password: "secret"}
	for range 2 {
		a, err := c.Do(t.Context(), q)
		if err != nil || string(a.Body) != "type 3 user true data" {
			t.Fatalf("%+v %v", a, err)
		}
	}
	if len(from) != 6 || from[0] != from[2] || from[3] != from[5] || from[0] == from[3] {
		t.Errorf("connections %v", from)
	}
}

func TestMatches(t *testing.T) {
	f := func(list string, status int, want bool) {
		t.Helper()
		if got := Matches(list, status); got != want {
			t.Errorf("Matches(%q, %d) = %t", list, status, got)
		}
	}
	f("", 500, true)
	f("200", 200, true)
	f("200", 201, false)
	f("200-299 , 304", 304, true)
	f("200-299", 299, true)
	f("x,-,200-", 200, false)
}

// BenchmarkCheck is one check over a connection that is kept.
func BenchmarkCheck(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "1") }))
	defer s.Close()
	c := New(Options{})
	defer c.Close()
	tasks, results := []*poller.Task{{Item: &model.Item{Collect: &model.Collect{HTTP: get(s.URL)}}}}, make([]poller.Result, 1)
	for b.Loop() {
		if c.Check(b.Context(), tasks, results); results[0].Outcome != poller.Value {
			b.Fatalf("%s", results[0].Text)
		}
	}
}

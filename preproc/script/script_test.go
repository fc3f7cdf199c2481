package script

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/internal/guard"
)

// The test binary is its own worker.
func TestMain(m *testing.M) {
	if os.Getenv("TIDEMARK_TEST_WORKER") != "" {
		if err := Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func runner(t testing.TB, o Options) *Runner {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o.Command, o.Environment = []string{self}, []string{"TIDEMARK_TEST_WORKER=1"}
	r := New(o)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestRun(t *testing.T) {
	r := runner(t, Options{OutputBytes: 1000})
	f := func(source, value, want string) {
		t.Helper()
		out, err := r.Run(source, []byte(value))
		got := string(out)
		switch {
		case err != nil:
			got = "error: " + err.Error()
		case out == nil:
			got = "nothing"
		}
		if got != want {
			t.Errorf("%s of %q: %s, want %s", source, value, got, want)
		}
	}
	f("return value + 1;", "a", "a1")
	f("return 1 + 0.5;", "", "1.5")
	f("return JSON.parse(value).a * 2", `{"a":21}`, "42")
	f("return null", "", "nothing")
	f("return true", "", "true")
	f("return ''", "", "")
	f("return {a:[1]}", "", `{"a":[1]}`)
	f("var x = 1;", "", "error: the script returns nothing; expected a text, a number, a boolean or null")
	f("throw 'down'", "", "error: down")
	f("throw new Error('no ' + value)", "disk", "error: Error: no disk")
	f("return x.y", "", "error: ReferenceError: x is not defined")
	f("return (", "", "error: SyntaxError: script: Line 2:1 Unexpected token } (and 4 more errors)")
	f("return new Array(1001).join('a')", "", strings.Repeat("a", 1000))
	f("return new Array(1002).join('a')", "", "error: the script yields more than 1000 bytes")
	f("function f(){ return f() + 1 } return f()", "", "error: the script has too many calls within calls")
	f("return btoa(value) + atob('w6k=')", "é", "w6k=é")
	f("return atob('*')", "", "error: atob: the text is no base64")
	f("return md5(value) + ' ' + sha256('')", "", "d41d8cd98f00b204e9800998ecf8427e e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
	f("return hmac('sha256', 'key', 'The quick brown fox jumps over the lazy dog')", "", "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8")
	f("return hmac('sha1', 'a', 'b')", "", `error: hmac: "sha1" is no algorithm; expected md5 or sha256`)
	f("try { hmac('sha1', 'a', 'b') } catch (e) { return 'failed: ' + e }", "", `failed: Error: hmac: "sha1" is no algorithm; expected md5 or sha256`)
	f("return hmac('md5', null, 'b')", "", `error: argument 2 is missing`)
	f("return sign('sha256', 'x', 'b')", "", `error: sign: the key is no RSA private key in PEM`)
	f(`return XML.fromJson('{"a":{"@b":"1","c":["x",null]}}')`, "", `<?xml version="1.0" encoding="UTF-8"?>`+"\n"+`<a b="1"><c>x</c><c/></a>`+"\n")
	f("return XML.query('/a/b/text()', value) + XML.toJson(value)", "<a><b>1</b></a>", `1{"a":{"b":"1"}}`)
	f("Zabbix.log(3, 'x'); Zabbix.sleep(1); return 1", "", "1")
	f("global = 5; return 1", "", "1")
	f("return typeof global", "", "undefined")
	f("return typeof require + typeof process", "", "undefinedundefined")
}

func TestLimits(t *testing.T) {
	r := runner(t, Options{Workers: 1, Timeout: 300 * time.Millisecond, MemoryBytes: 64 << 20})
	if _, err := r.Run("while(true){}", nil); err == nil || err.Error() != ErrTimeout.Error() {
		t.Errorf("an endless loop: %v", err)
	}
	if _, err := r.Run("Zabbix.sleep(60000)", nil); err == nil || !strings.Contains(err.Error(), ErrTimeout.Error()) {
		t.Errorf("a long sleep: %v", err)
	}
	for _, source := range []string{
		"var s='xxxxxxxxxxxxxxxx', a=[]; while(true){ a.push(s+a.length); }",
		"var s='xxxxxxxxxxxxxxxx'; while(true){ s+=s; }",
		"return new Array(300000000).join('abcdefgh').length",
	} {
		if _, err := r.Run(source, nil); err == nil {
			t.Errorf("%s has no error", source)
		}
	}
	if out, err := r.Run("return 'still here'", nil); err != nil || string(out) != "still here" {
		t.Errorf("after all that: %s, %v", out, err)
	}
}

// TestKilled checks that a worker that does not answer at all is ended by the server.
func TestKilled(t *testing.T) {
	r := New(Options{Command: []string{"/bin/cat"}, Workers: 1, Timeout: 50 * time.Millisecond})
	defer r.Close()
	if _, err := r.Run("return 1", nil); err == nil {
		t.Error("cat is no worker")
	}
	r2 := New(Options{Command: []string{"/bin/sleep", "60"}, Workers: 1, Timeout: 50 * time.Millisecond})
	defer r2.Close()
	if _, err := r2.Run("return 1", nil); !errors.Is(err, ErrTimeout) {
		t.Errorf("error %v, want %v", err, ErrTimeout)
	}
	r3 := New(Options{Command: []string{"/bin/false"}, Workers: 1})
	defer r3.Close()
	if _, err := r3.Run("return 1", nil); err == nil {
		t.Error("false is no worker")
	}
}

func TestHTTP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		user, password, _ := q.BasicAuth()
		w.Header().Set("X-Answer", "yes")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, "%s %s %s %s:%s %s", q.Method, q.URL.Path, q.Header.Get("X-Token"), user, password, body)
	}))
	defer server.Close()
	r := runner(t, Options{})
	f := func(source, want string) {
		t.Helper()
		out, err := r.Run(source, []byte(server.URL))
		got := string(out)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", source, got, want)
		}
	}
	f("var q = new HttpRequest(); q.addHeader('X-Token: t'); q.setHttpAuth(1,'u','p'); var b = q.post(value+'/x', {a:1}); return b + ' ' + q.getStatus() + ' ' + q.getHeaders()['X-Answer'];",
		`POST /x t u:p {"a":1} 202 yes`)
	f("var q = new CurlHttpRequest(); return q.Get(value+'/y')", "GET /y  : ")
	f("return new HttpRequest().customRequest('PURGE', value+'/z', 'b')", "PURGE /z  : b")
	f("return new HttpRequest().get('file:///etc/passwd')", `error: HttpRequest: "file:///etc/passwd" is no address; expected http:// or https://`)
	f("for (var i=0;i<11;i++) new HttpRequest().get(value); return 1", "error: HttpRequest: more than 10 objects in one script")
	f("var q=new HttpRequest(); for (var i=0;i<101;i++) q.head(value); return 1", "error: HttpRequest: more than 100 requests")
	f("var q = new HttpRequest(); q.addHeader('bad'); return q.get(value)", `error: HttpRequest: "bad" is no header; expected name: value`)
	f("try { new HttpRequest().get('http://127.0.0.1:1/') } catch (e) { return 'caught' }", "caught")
}

// Requests keep the rules that the server gives, also behind a redirect and through a proxy.
func TestHTTP_rules(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/away" {
			http.Redirect(w, q, "http://169.254.169.254/secret", http.StatusFound)
		}
	}))
	defer server.Close()
	port := uint16(server.Listener.Addr().(*net.TCPAddr).Port)
	denied := []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16")}
	f := func(rules guard.Options, source, want string) {
		t.Helper()
		out, err := runner(t, Options{Rules: rules}).Run(source, []byte(server.URL))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q, %v, want %q", source, out, err, want)
		}
	}
	f(guard.Options{Denied: denied}, "new HttpRequest().get(value); return 1", "")
	f(guard.Options{Denied: denied}, "new HttpRequest().get(value + '/away'); return 1", "checks must not reach 169.254.169.254")
	f(guard.Options{OwnPorts: []uint16{port}}, "new HttpRequest().get(value); return 1", "is this server's")
	f(guard.Options{OwnPorts: []uint16{port}}, "var q = new HttpRequest(); q.setProxy(value); q.get('http://10.0.0.1/'); return 1", "is this server's")
	f(guard.Options{Allowed: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, "new HttpRequest().get(value); return 1", "collect.allowed_networks")
}

func TestConcurrent(t *testing.T) {
	r := runner(t, Options{Workers: 2})
	var wait sync.WaitGroup
	for i := range 20 {
		wait.Go(func() {
			out, err := r.Run("return value*2", fmt.Appendf(nil, "%d", i))
			if err != nil || string(out) != fmt.Sprint(i*2) {
				t.Errorf("%d: %s %v", i, out, err)
			}
		})
	}
	wait.Wait()
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	_ = r.Close()
	_ = r.Close()
	if _, err := r.Run("return 1", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if len(r.all) != 0 {
		t.Errorf("%d processes are left", len(r.all))
	}
}

func FuzzFrames(f *testing.F) {
	var b bytes.Buffer
	_ = writeRequest(&b, request{1000, []byte("{}"), []byte("return 1"), []byte("v")})
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, in []byte) {
		if q, err := readRequest(bytes.NewReader(in)); err == nil {
			var out bytes.Buffer
			if err := writeRequest(&out, q); err != nil || !bytes.HasPrefix(in, out.Bytes()) {
				t.Fatalf("%x reads back as %x", in, out.Bytes())
			}
		}
		_, _ = readAnswer(bytes.NewReader(in), 1<<16)
	})
}

func BenchmarkRun(b *testing.B) {
	r := runner(b, Options{})
	value := []byte(`{"a":{"b":[1,2,3]}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Run("return JSON.parse(value).a.b.length;", value); err != nil {
			b.Fatal(err)
		}
	}
}

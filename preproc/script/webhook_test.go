package script

import (
	"context"
	"crypto/md5" //nolint:gosec // digest authentication
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"tidemark/internal/guard"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// Webhooks reach what is public or allowed, may return nothing, and give back what they write to the log.
func TestDo_webhook(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer server.Close()
	r := runner(t, Options{})
	f := func(j Job, want, wantLog string) {
		t.Helper()
		j.Webhook, j.Value = true, []byte(server.URL)
		out, err := r.Do(t.Context(), j)
		got := string(out.Value)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want || out.Log != wantLog {
			t.Errorf("%s: %q with the log %q, want %q with %q", j.Source, got, out.Log, want, wantLog)
		}
	}
	const get = "Zabbix.log(4, 'to ' + 1); return new HttpRequest().get(value)"
	refused := "error: HttpRequest: Get \"" + server.URL + "\": dial tcp " + strings.TrimPrefix(server.URL, "http://") +
		": 127.0.0.1 is in 127.0.0.0/8, which is not public; to permit it, add it to the media type's allow"
	f(Job{Source: get}, refused, "to 1\n")
	f(Job{Source: get, Allow: loopback}, "hello", "to 1\n")
	f(Job{Source: "console.warn({a:1}); console.error('x')"}, "", "{\"a\":1}\nx\n")
	f(Job{Source: "throw 'Sending failed'"}, "error: Sending failed", "")
	f(Job{Source: "var s = new Array(1025).join('x'); for (var i=0;i<100;i++) Zabbix.Log(3, s); return 'ok'"}, "ok",
		strings.Repeat(strings.Repeat("x", 1024)+"\n", 15)+strings.Repeat("x", 1008)+"\n")
	f(Job{Source: "var s = new Array(1<<20).join('x'); for (var i=0;i<9;i++) console.log(s)"}, "error: the script writes more than 8388608 bytes to the log",
		strings.Repeat("x", maxLogBytes-1)+"\n")
	// The rules of the server hold besides.
	denied := runner(t, Options{Rules: guard.Options{Denied: loopback}})
	if _, err := denied.Do(t.Context(), Job{Source: get, Value: []byte(server.URL), Webhook: true, Allow: loopback}); err == nil || !strings.Contains(err.Error(), "denied_networks") {
		t.Errorf("a denied network: %v", err)
	}
}

func TestDo_contextEnds(t *testing.T) {
	arrived := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		close(arrived)
		<-q.Context().Done()
	}))
	defer server.Close()
	r := runner(t, Options{Workers: 1})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := r.Do(ctx, Job{Source: "return new HttpRequest().get(value)", Value: []byte(server.URL)}); !errors.Is(err, ErrTimeout) {
		t.Errorf("a script whose caller is gone: %v", err)
	}
	<-r.free
	if _, err := r.Do(ctx, Job{Source: "return 1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("while no process is free: %v", err)
	}
	r.free <- struct{}{}
}

// guarded takes user u with password p by basic or digest authentication, whichever it offers.
func guarded(w http.ResponseWriter, q *http.Request) {
	if q.URL.Path == "/basic" {
		if user, password, _ := q.BasicAuth(); user == "u" && password == "p" {
			_, _ = io.WriteString(w, "in")
			return
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if q.URL.Path == "/ntlm" {
		ntlm(w, q)
		return
	}
	fields := map[string]string{}
	for _, m := range regexp.MustCompile(`(\w+)="?([^",]*)`).FindAllStringSubmatch(strings.TrimPrefix(q.Header.Get("Authorization"), "Digest "), -1) {
		fields[m[1]] = m[2]
	}
	sum := func(parts ...string) string {
		s := md5.Sum([]byte(strings.Join(parts, ":"))) //nolint:gosec // as above
		return hex.EncodeToString(s[:])
	}
	if fields["response"] != sum(sum("u", "x", "p"), "n", fields["nc"], fields["cnonce"], "auth", sum(q.Method, q.URL.Path)) {
		w.Header().Set("WWW-Authenticate", `Digest realm="x", nonce="n", qop="auth", algorithm=MD5`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	body, _ := io.ReadAll(q.Body)
	fmt.Fprintf(w, "in with %s", body)
}

func TestHTTP_authentication(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(guarded))
	defer server.Close()
	r := runner(t, Options{})
	f := func(path, kinds, want string) {
		t.Helper()
		out, err := r.Run("var q = new HttpRequest(); q.setHttpAuth("+kinds+", 'u', 'p'); return q.post(value, 'data') + q.getStatus()", []byte(server.URL+path))
		got := string(out)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s with %s: %s, want %s", path, kinds, got, want)
		}
	}
	f("/basic", "HTTPAUTH_BASIC", "in200")
	f("/basic", "HTTPAUTH_BASIC | HTTPAUTH_DIGEST", "in200")
	f("/basic", "HTTPAUTH_DIGEST", "401")
	f("/basic", "HTTPAUTH_NONE", "401")
	f("/digest", "HTTPAUTH_DIGEST", "in with data200")
	f("/digest", "HTTPAUTH_BASIC | HTTPAUTH_DIGEST | HTTPAUTH_NTLM", "in with data200")
	f("/digest", "HTTPAUTH_NEGOTIATE", "HttpRequest: authentication of kind 4 is not known; expected HTTPAUTH_BASIC, HTTPAUTH_DIGEST or HTTPAUTH_NTLM")
	f("/ntlm", "HTTPAUTH_NTLM", "in by NTLM with data200")
	f("/basic", "HTTPAUTH_NTLM | HTTPAUTH_BASIC", "in200")
}

func TestHTTP_headers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header()["X-Two"] = []string{"a", "b"}
		fmt.Fprintf(w, "%s %s|%s", q.Method, q.Header.Get("Content-Type"), q.Header.Get("X-Old"))
	}))
	defer server.Close()
	r := runner(t, Options{})
	f := func(source, want string) {
		t.Helper()
		out, err := r.Run("var q = new HttpRequest();"+source, []byte(server.URL))
		if err != nil || string(out) != want {
			t.Errorf("%s: %q %v, want %q", source, out, err, want)
		}
	}
	f(`return q.post(value, '{"a":1}')`, "POST application/json|")
	f("return q.put(value, 'text')", "PUT text/plain|")
	f("q.addHeader('X-Old: 1'); return q.patch(value, '{}')", "PATCH |1")
	f("q.AddHeader('X-Old', '2'); return q.Delete(value)", "DELETE |2")
	f("q.addHeader('X-Old: 1'); q.clearHeader(); return q.trace(value, '{}')", "TRACE application/json|")
	f("q.options(value); return q.getHeaders()['X-Two'] + q.getHeaders(true)['X-Two'][1] + q.GetHeaders(true)['X-Two'].length", "a, bb2")
	f("return q.head(value) + q.getStatus()", "200")
	f("try { q.addHeader('a: ' + new Array(1<<18).join('x')) } catch (e) { return 'long' }", "long")
}

// ntlm has the exchange of NTLM over one connection; what a real server makes of the last message is not looked at.
func ntlm(w http.ResponseWriter, q *http.Request) {
	challenge := append([]byte("NTLMSSP\x00\x02\x00\x00\x00\x00\x00\x00\x00\x38\x00\x00\x00\x01\x02\x08\x00"), make([]byte, 8+8)...)
	challenge = append(challenge, "\x00\x00\x00\x00\x38\x00\x00\x00"...)
	challenge = append(challenge, make([]byte, 8)...)
	body, _ := io.ReadAll(q.Body)
	message, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(q.Header.Get("Authorization"), "NTLM "))
	switch {
	case len(message) < 9:
		w.Header().Set("WWW-Authenticate", "NTLM")
	case message[8] == 1:
		w.Header().Set("WWW-Authenticate", "NTLM "+base64.StdEncoding.EncodeToString(challenge))
	default:
		fmt.Fprintf(w, "in by NTLM with %s", body)
		return
	}
	w.WriteHeader(http.StatusUnauthorized)
}

// The scripts of newer media types are made of constants, constructors and names that nobody declared.
func TestDo_newerScripts(t *testing.T) {
	const source = `
const Logger = function(name) { this.name = name; this.log = function(level, text) { Zabbix.log(level, '[' + this.name + '] ' + text); } };
const Hook = function(value) {
	params = JSON.parse(value);
	this.params = params;
	this.run = function() {
		let results = [this.onTriggerProblem && this.onTriggerProblem.apply(this, [{source: 'Trigger'}])];
		for (idx in results) { if (typeof results[idx] !== 'undefined') { return JSON.stringify(results[idx]); } }
	};
};
Hook.prototype.onTriggerProblem = function(alert) { new Logger('x').log(4, alert.source); return {tags: {[` + "'__id_' + this.params.to" + `]: this.params.tags.reduce(function(a, t) { return a + t.value; }, '')}}; };
const hook = new Hook(value);
return hook.run();`
	out, err := runner(t, Options{}).Do(t.Context(), Job{Source: source, Value: []byte(`{"to":"ops","tags":[{"value":"a"},{"value":"b"}]}`), Webhook: true})
	if err != nil || string(out.Value) != `{"tags":{"__id_ops":"ab"}}` || out.Log != "[x] Trigger\n" {
		t.Errorf("%s %q %v", out.Value, out.Log, err)
	}
}

package media

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestCheckAddress(t *testing.T) {
	f := func(addr string, allowed bool, allow ...string) {
		t.Helper()
		var list []netip.Prefix
		for _, p := range allow {
			list = append(list, netip.MustParsePrefix(p))
		}
		err := CheckAddress(netip.MustParseAddr(addr), list)
		if (err == nil) != allowed || err != nil && !errors.Is(err, ErrAddress) {
			t.Errorf("%s allow %v: %v, want allowed %v", addr, allow, err, allowed)
		}
	}
	for _, addr := range []string{"1.1.1.1", "93.184.216.34", "172.15.0.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1", "64:ff9b::101:101", "2002:101:101::1"} {
		f(addr, true)
	}
	for _, addr := range []string{
		"127.0.0.1", "127.255.0.1", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "192.0.0.192",
		"198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "192.0.2.1", "203.0.113.9",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1", "2001::1",
		"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::1", "2002:c0a8:101::1", "fec0::1", "100::1",
	} {
		f(addr, false)
	}
	f("10.1.2.3", true, "10.1.0.0/16")
	f("::ffff:10.1.2.3", true, "10.1.0.0/16")
	f("10.2.2.3", false, "10.1.0.0/16")
	f("127.0.0.1", true, "192.168.0.0/16", "127.0.0.0/8")
	f("fe80::1%eth0", true, "fe80::/10")
}

// loopback permits the servers of the tests.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func hook(t *testing.T, w Webhook) *Webhook {
	t.Helper()
	made, err := NewWebhook(&w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made
}

// macros expands three macros, one of them hostile.
func macros(text string) string {
	return strings.NewReplacer("{ALERT.SUBJECT}", `he said "hi" \ & <b>`+"\n\x01é", "{ALERT.SENDTO}", "../x?y=1&z", "{SECRET.TOKEN}", "t0ken\r\nX-Evil: 1").Replace(text)
}

func TestWebhook_request(t *testing.T) {
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	defer server.Close()
	h := hook(t, Webhook{
		URL: server.URL + "/send/{ALERT.SENDTO}?to={ALERT.SENDTO}", Headers: map[string]string{"Authorization": "Bearer {SECRET.TOKEN}"},
		Body: map[string]any{"text": "{ALERT.SUBJECT}", "n": 1, "list": []any{"{ALERT.SUBJECT}", true, nil}}, Expect: `"ok":true`, Allow: loopback,
	})
	answer, err := h.Send(t.Context(), Message{ID: "alert-7", Expand: macros})
	if err != nil || answer != `200 OK {"ok":true}` {
		t.Fatalf("%q, %v", answer, err)
	}
	var decoded struct {
		Text string
		N    int
		List []any
	}
	if err := json.Unmarshal(body, &decoded); err != nil || decoded.Text != macros("{ALERT.SUBJECT}") || decoded.N != 1 || len(decoded.List) != 3 {
		t.Errorf("body %s: %+v, %v", body, decoded, err)
	}
	if got.Method != http.MethodPost || got.URL.Query().Get("to") != "../x?y=1&z" || strings.Count(got.URL.EscapedPath(), "/") != 2 {
		t.Errorf("%s %s", got.Method, got.URL)
	}
	if got.Header.Get("Authorization") != "Bearer t0ken  X-Evil: 1" || got.Header.Get("X-Evil") != "" || got.Header.Get("Idempotency-Key") != "alert-7" {
		t.Errorf("headers %v", got.Header)
	}
	whole := hook(t, Webhook{URL: "{ALERT.SENDTO}", Allow: loopback})
	if _, err := whole.Send(t.Context(), Message{Expand: func(string) string { return server.URL + "/mine" }}); err != nil || got.URL.Path != "/mine" {
		t.Errorf("%s, %v", got.URL, err)
	}
}

func TestWebhook_failures(t *testing.T) {
	secret := "tok3n-in-url"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/refuse":
			http.Error(w, "no such room\x1b[31m", http.StatusForbidden)
		case "/long":
			_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
		case "/other":
			http.Redirect(w, r, strings.Replace("http://"+r.Host, "127.0.0.1", "localhost", 1)+"/", http.StatusTemporaryRedirect)
		case "/metadata":
			http.Redirect(w, r, "http://169.254.169.254/latest/", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/here":
			http.Redirect(w, r, "/", http.StatusTemporaryRedirect)
		case "/slow":
			_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that the caller is gone
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	f := func(h Webhook, wantError string, permanent bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		answer, err := hook(t, h).Send(ctx, Message{})
		if wantError == "" {
			if err != nil {
				t.Errorf("%s: %v", h.URL, err)
			}
			return
		}
		if err == nil || !strings.Contains(err.Error(), wantError) || Permanent(err) != permanent {
			t.Errorf("%s: %v, want %q, permanent %v", h.URL, err, wantError, permanent)
		}
		if err != nil && strings.Contains(err.Error(), secret) || strings.ContainsRune(answer, 0x1b) || len(answer) > 3<<10 {
			t.Errorf("%s: answer %q, error %v", h.URL, answer, err)
		}
	}
	u := server.URL
	f(Webhook{URL: u + "/refuse?" + secret, Allow: loopback}, "403 Forbidden no such room[31m", false)
	f(Webhook{URL: u + "/long", Allow: loopback}, "", false)
	f(Webhook{URL: u + "/long", Allow: loopback, Expect: "ok"}, `expected "ok" in it`, false)
	f(Webhook{URL: u + "/here", Allow: loopback}, "", false)
	f(Webhook{URL: u + "/other?" + secret, Allow: loopback}, "redirected from", true)
	f(Webhook{URL: u + "/metadata", Allow: loopback}, "redirected from", true)
	f(Webhook{URL: u + "/round", Allow: loopback}, "more than 3 redirects", true)
	f(Webhook{URL: u + "/slow?" + secret, Allow: loopback}, "deadline", false)
	// Without permission neither the address nor a name that leads to it is reached.
	f(Webhook{URL: u + "/?" + secret}, "127.0.0.1 is in 127.0.0.0/8, which is not public", true)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	f(Webhook{URL: "http://localhost:" + port + "/"}, "not public", true)
	f(Webhook{URL: u + "/", Body: map[string]any{"x": strings.Repeat("x", maxRequestBytes)}, Allow: loopback}, "expected at most", true)
}

func TestWebhook_settings(t *testing.T) {
	for _, bad := range []Webhook{
		{},
		{URL: "ftp://x/"},
		{URL: "http://"},
		{URL: "/path"},
		{URL: "http://{HOST.NAME}/x"},
		{URL: "{HOST.NAME}"},
		{URL: "http://x/", Method: "TRACE"},
		{URL: "http://x/", Headers: map[string]string{"bad name": "x"}},
	} {
		if _, err := NewWebhook(&bad); !Permanent(err) {
			t.Errorf("%+v: %v, want ErrSettings", bad, err)
		}
	}
	h := hook(t, Webhook{URL: "{ALERT.SENDTO}"})
	for _, to := range []string{"", "file:///etc/passwd", "gopher://x/", "nothing"} {
		if _, err := h.Send(t.Context(), Message{Expand: func(string) string { return to }}); !Permanent(err) {
			t.Errorf("address %q: %v, want ErrSettings", to, err)
		}
	}
}

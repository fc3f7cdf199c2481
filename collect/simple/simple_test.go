package simple

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/collect/poller"
	"tidemark/internal/guard"
	"tidemark/model"
)

// serve answers each connection with a function and returns the port.
func serve(t *testing.T, fn func(net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				_ = nc.SetDeadline(time.Now().Add(time.Minute))
				fn(nc)
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}

// says returns a server that says something and then listens.
func says(text string) func(net.Conn) {
	return func(nc net.Conn) { _, _ = io.WriteString(nc, text); _, _ = io.Copy(io.Discard, nc) }
}

type noPinger struct{}

func (noPinger) Ping(_ context.Context, key, target string) (string, error) {
	return key + " " + target, nil
}

func check(t *testing.T, c *Checker, key string, timeout time.Duration) (poller.Outcome, string) {
	t.Helper()
	results := make([]poller.Result, 1)
	task := &poller.Task{Item: &model.Item{Key: key}, Interface: &model.Interface{Address: "127.0.0.1"}, Timeout: timeout}
	c.Check(t.Context(), []*poller.Task{task}, results)
	return results[0].Outcome, string(results[0].Text)
}

func TestService(t *testing.T) {
	c := New(Options{Pinger: noPinger{}, Rules: guard.New(guard.Options{Denied: []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16")}})})
	closed := serve(t, func(net.Conn) {})
	f := func(key, want string) {
		t.Helper()
		if outcome, got := check(t, c, key, time.Minute); outcome != poller.Value || got != want {
			t.Errorf("%s: %d %q, want %q", key, outcome, got, want)
		}
	}
	service := func(name, port, want string) { t.Helper(); f("net.tcp.service["+name+",,"+port+"]", want) }
	service("tcp", closed, "1")
	service("http", closed, "1")
	service("smtp", closed, "0")
	service("smtp", serve(t, says("220-hello\r\n220 ready\r\n")), "1")
	service("smtp", serve(t, says("554 no\r\n")), "0")
	service("ftp", serve(t, says("220 ready\r\n")), "1")
	service("pop", serve(t, says("+OK ready\r\n")), "1")
	service("pop", serve(t, says("-ERR\r\n")), "0")
	service("nntp", serve(t, says("201 ready\r\n")), "1")
	service("imap", serve(t, says("* OK ready\r\n")), "1")
	service("ssh", serve(t, says("before\r\nSSH-2.0-x\r\n")), "1")
	service("ssh", serve(t, says(strings.Repeat("x", 10_000)+"\n")), "0")
	service("telnet", serve(t, says("\xff\xfd\x18welcome\r\nlogin: ")), "1")
	service("telnet", serve(t, func(nc net.Conn) { _, _ = io.WriteString(nc, "welcome\r\n") }), "0")
	ldap := func(answer string) func(net.Conn) {
		return func(nc net.Conn) { _, _ = io.ReadFull(nc, make([]byte, 14)); _, _ = io.WriteString(nc, answer) }
	}
	service("ldap", serve(t, ldap("\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x00\x04\x00\x04\x00")), "1")
	service("ldap", serve(t, ldap("\x30\x84\x00\x00\x00\x10\x02\x01\x01\x61\x84\x00\x00\x00\x07\x0a\x01\x00\x04\x00\x04\x00")), "1")
	service("ldap", serve(t, ldap("HTTP/1.1 400\r\n\r\n")), "0")
	web := httptest.NewTLSServer(http.NotFoundHandler())
	defer web.Close()
	_, port, _ := net.SplitHostPort(web.Listener.Addr().String())
	service("https", port, "1")
	service("https", closed, "0")
	f("icmpping[,4]", "icmpping[,4] 127.0.0.1")
	if _, got := check(t, c, "net.tcp.service.perf[tcp,127.0.0.1,"+closed+"]", time.Minute); got == "0" {
		t.Error("the time of a service that answers is 0")
	} else if n, err := strconv.ParseFloat(got, 64); err != nil || n <= 0 {
		t.Errorf("time %q", got)
	}
	if outcome, got := check(t, c, "net.tcp.service[ssh,,"+serve(t, func(nc net.Conn) { _, _ = io.Copy(io.Discard, nc) })+"]", 50*time.Millisecond); outcome != poller.Value || got != "0" {
		t.Errorf("a service that says nothing: %q", got)
	}
	wrong := func(key, want string) {
		t.Helper()
		if outcome, got := check(t, c, key, time.Minute); outcome != poller.NotSupported || !strings.Contains(got, want) {
			t.Errorf("%s: %d %q, want %q", key, outcome, got, want)
		}
	}
	wrong("net.tcp.service", "0 parameters")
	wrong("net.tcp.service[gopher]", "expected ssh, ldap")
	wrong("net.udp.service[ssh]", "expected ntp")
	wrong("net.tcp.service[tcp]", `port ""`)
	wrong("net.tcp.service[tcp,,65536]", `port "65536"`)
	wrong("net.tcp.service[http,169.254.169.254]", "checks must not reach")
	wrong("no.such[key]", "is not known")
}

func TestService_ntp(t *testing.T) {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	go func() {
		buffer := make([]byte, 100)
		for {
			n, from, err := pc.ReadFrom(buffer)
			if err != nil {
				return
			}
			answer := make([]byte, 48)
			answer[0] = 4<<3 | 4
			copy(answer[24:32], buffer[40:n])
			_, _ = pc.WriteTo(answer, from)
		}
	}()
	_, port, _ := net.SplitHostPort(pc.LocalAddr().String())
	if outcome, got := check(t, New(Options{}), "net.udp.service[ntp,,"+port+"]", time.Minute); outcome != poller.Value || got != "1" {
		t.Errorf("%d %q", outcome, got)
	}
}

func TestCertificate(t *testing.T) {
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	web.StartTLS()
	defer web.Close()
	_, port, _ := net.SplitHostPort(web.Listener.Addr().String())
	get := func(key string) *certificateAnswer {
		t.Helper()
		outcome, got := check(t, New(Options{}), key, time.Minute)
		a := &certificateAnswer{}
		if err := json.Unmarshal([]byte(got), a); outcome != poller.Value || err != nil {
			t.Fatalf("%s: %d %q, %v", key, outcome, got, err)
		}
		return a
	}
	a := get("web.certificate.get[example.com," + port + ",127.0.0.1]")
	cert := web.Certificate()
	if a.X509.NotAfter.Timestamp != cert.NotAfter.Unix() || a.X509.Subject != cert.Subject.String() || a.X509.Version != 3 || len(a.SHA256) != 64 || a.Result.Value != "valid-but-self-signed" {
		t.Errorf("%+v", a)
	}
	if a := get("web.certificate.get[https://127.0.0.1:" + port + "/x]"); a.Result.Value != "valid-but-self-signed" {
		t.Errorf("%+v", a)
	}
	if a := get("web.certificate.get[other.example," + port + ",127.0.0.1]"); a.Result.Value != "invalid" {
		t.Errorf("%+v", a)
	}
	for key, want := range map[string]string{
		"web.certificate.get[]": "expects a host name", "web.certificate.get[http://a]": "expected a host name or https", "web.certificate.get[a,x]": `port "x"`,
		"web.certificate.get[127.0.0.1,1]": "cannot connect",
	} {
		if outcome, got := check(t, New(Options{}), key, time.Minute); outcome != poller.NotSupported || !strings.Contains(got, want) {
			t.Errorf("%s: %d %q, want %q", key, outcome, got, want)
		}
	}
}

func FuzzTalk(f *testing.F) {
	for _, seed := range []string{"220 x\r\n", "\xff\xfd\x18login:", "SSH-2.0\n", "\x30\x84\x00\x00\x00\x10\x02\x01\x01\x61", "HTTP/1.1 200 OK\r\n\r\n", "\x24" + strings.Repeat("\x00", 60)} {
		f.Add(seed)
	}
	names := []string{"smtp", "ssh", "ldap", "telnet", "https", "ntp"}
	f.Fuzz(func(t *testing.T, answer string) {
		for _, name := range names {
			p, _ := protocolOf(name)
			ours, theirs := net.Pipe()
			go func() {
				go func() { _, _ = io.Copy(io.Discard, theirs) }()
				_, _ = io.WriteString(theirs, answer)
				theirs.Close()
			}()
			_ = ours.SetDeadline(time.Now().Add(time.Minute))
			p.talk(t.Context(), ours)
			ours.Close()
		}
	})
}

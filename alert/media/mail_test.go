package media

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"math/big"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// smtpServer is a mail server of the test: it speaks enough of SMTP, with STARTTLS, AUTH and answers that can be chosen.
type smtpServer struct {
	t        *testing.T
	listener net.Listener
	tls      *tls.Config
	implicit bool   // TLS from the first byte
	auth     string // the mechanisms offered
	refuse   string // the command that is refused

	mu       sync.Mutex
	commands []string
	secure   bool
	mails    []string
}

func startSMTP(t *testing.T, s *smtpServer) *smtpServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.t, s.listener = t, l
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.serve(c)
		}
	})
	t.Cleanup(func() { _ = l.Close(); served.Wait() })
	return s
}

func (s *smtpServer) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if s.implicit {
		c = tls.Server(c, s.tls)
	}
	s.mu.Lock()
	s.secure = s.implicit
	s.mu.Unlock()
	in := bufio.NewReader(c)
	say := func(text string) { _, _ = io.WriteString(c, text+"\r\n") }
	say("220 test")
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		verb, _, _ := strings.Cut(strings.ToUpper(line), " ")
		s.mu.Lock()
		s.commands = append(s.commands, line)
		s.mu.Unlock()
		switch {
		case s.refuse != "" && strings.HasPrefix(strings.ToUpper(line), s.refuse):
			say("550 not here")
		case verb == "EHLO":
			say("250-test")
			if s.auth != "" {
				say("250-AUTH " + s.auth)
			}
			if s.tls != nil && !s.secure {
				say("250-STARTTLS")
			}
			say("250 8BITMIME")
		case verb == "STARTTLS":
			say("220 go")
			secure := tls.Server(c, s.tls)
			c, in = secure, bufio.NewReader(secure)
			s.mu.Lock()
			s.secure = true
			s.mu.Unlock()
		case verb == "AUTH":
			s.login(line, in, say)
		case verb == "DATA":
			say("354 send")
			var text strings.Builder
			for {
				line, err := in.ReadString('\n')
				if err != nil {
					return
				}
				if line == ".\r\n" {
					break
				}
				text.WriteString(strings.TrimPrefix(line, "."))
			}
			s.mu.Lock()
			s.mails = append(s.mails, text.String())
			s.mu.Unlock()
			say("250 taken")
		case verb == "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

func (s *smtpServer) login(line string, in *bufio.Reader, say func(string)) {
	if !strings.HasPrefix(line, "AUTH LOGIN") {
		say("235 welcome")
		return
	}
	for _, question := range []string{"Username:", "Password:"} {
		say("334 " + base64.StdEncoding.EncodeToString([]byte(question)))
		answer, err := in.ReadString('\n')
		if err != nil {
			return
		}
		text, _ := base64.StdEncoding.DecodeString(strings.TrimSpace(answer))
		s.mu.Lock()
		s.commands = append(s.commands, string(text))
		s.mu.Unlock()
	}
	say("235 welcome")
}

// certificate makes a certificate for 127.0.0.1 and the file of its authority.
func certificate(t *testing.T) (*tls.Config, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}, file
}

func TestMail_securityAndAuthentication(t *testing.T) {
	settings, ca := certificate(t)
	f := func(name string, server *smtpServer, m Mail, wantSecure bool, wantCommand, wantError string) {
		t.Run(name, func(t *testing.T) {
			s := startSMTP(t, server)
			m.Server, m.From = s.listener.Addr().String(), "Tidemark <tidemark@example.com>"
			answer, err := m.Send(t.Context(), Message{To: "a@example.com, B <b@example.com>", Subject: "s", Body: "b"})
			s.mu.Lock()
			defer s.mu.Unlock()
			if wantError != "" {
				if err == nil || !strings.Contains(err.Error(), wantError) {
					t.Errorf("error %v, want %q", err, wantError)
				}
				if len(s.mails) != 0 {
					t.Error("the mail was sent all the same")
				}
				return
			}
			if err != nil || !strings.Contains(answer, "accepted") {
				t.Fatalf("%q, %v", answer, err)
			}
			if s.secure != wantSecure || len(s.mails) != 1 {
				t.Errorf("secure %v, %d mails", s.secure, len(s.mails))
			}
			all := strings.Join(s.commands, "\n")
			for _, want := range []string{wantCommand, "MAIL FROM:<tidemark@example.com>", "RCPT TO:<a@example.com>", "RCPT TO:<b@example.com>"} {
				if !strings.Contains(all, want) {
					t.Errorf("commands %q, want %q in them", all, want)
				}
			}
		})
	}
	plain := "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00me\x00secret"))
	f("plain", &smtpServer{}, Mail{Security: NoTLS}, false, "EHLO", "")
	f("starttls", &smtpServer{tls: settings, auth: "PLAIN LOGIN"}, Mail{CAFile: ca, User: "me", Password: "secret"}, true, plain, "")
	f("login", &smtpServer{tls: settings, auth: "LOGIN"}, Mail{Security: StartTLS, CAFile: ca, User: "me", Password: "secret"}, true, "me\nsecret", "")
	f("tls", &smtpServer{tls: settings, implicit: true}, Mail{Security: TLS, CAFile: ca}, true, "EHLO", "")
	f("no starttls offered", &smtpServer{}, Mail{}, false, "", "does not offer STARTTLS")
	f("unknown authority", &smtpServer{tls: settings}, Mail{}, false, "", "certificate")
	f("no mechanism", &smtpServer{auth: "GSSAPI"}, Mail{Security: NoTLS, User: "me"}, false, "", "expected PLAIN or LOGIN")
	f("sender refused", &smtpServer{refuse: "MAIL"}, Mail{Security: NoTLS}, false, "", "refused the sender tidemark@example.com: 550")
	f("recipient refused", &smtpServer{refuse: "RCPT TO:<B@"}, Mail{Security: NoTLS}, false, "", "refused the recipient b@example.com: 550")
	f("message refused", &smtpServer{refuse: "DATA"}, Mail{Security: NoTLS}, false, "", "refused the message: 550")
}

func TestMail_content(t *testing.T) {
	s := startSMTP(t, &smtpServer{})
	m := Mail{Server: s.listener.Addr().String(), Security: NoTLS, From: "Wächter <tidemark@example.com>"}
	message := Message{
		To: "a@example.com", ID: "alert-2", Thread: "problem-1",
		Subject: "Диск заполнен на 99% — срочно\r\nBcc: victim@example.com " + strings.Repeat("очень длинно ", 40),
		Body:    "line one\n.\nBcc: nobody\n" + strings.Repeat("x", 2000) + "\nконец",
	}
	if _, err := m.Send(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	got, err := mail.ReadMessage(strings.NewReader(s.mails[0]))
	if err != nil {
		t.Fatal(err)
	}
	if got.Header.Get("Bcc") != "" {
		t.Error("a subject made a header")
	}
	decoder := mime.WordDecoder{}
	subject, err := decoder.DecodeHeader(got.Header.Get("Subject"))
	if err != nil || !strings.HasPrefix(subject, "Диск заполнен на 99% — срочно") || strings.ContainsAny(subject, "\r\n") {
		t.Errorf("subject %q, %v", subject, err)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(got.Body))
	if text := strings.ReplaceAll(string(body), "\r\n", "\n"); err != nil || strings.TrimSpace(text) != message.Body {
		t.Errorf("body %q, %v", text, err)
	}
	for name, want := range map[string]string{
		"Message-Id": "<alert-2@example.com>", "References": "<problem-1@example.com>", "Auto-Submitted": "auto-generated", "Content-Type": "text/plain; charset=UTF-8",
	} {
		if got.Header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Header.Get(name), want)
		}
	}
	for line := range strings.Lines(s.mails[0]) {
		if len(line) > 1000 {
			t.Errorf("a line has %d bytes, the limit is 998: %.80q", len(line), line)
		}
	}
}

func TestMail_deadlineAndSettings(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts, but nobody answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	m := Mail{Server: l.Addr().String(), Security: NoTLS, From: "a@b.c"}
	if _, err := m.Send(ctx, Message{To: "a@b.c"}); err == nil {
		t.Error("Send waited for nothing and was content")
	}
	for i, bad := range []Mail{{Server: "nowhere", From: "a@b.c"}, {Server: "h:25", From: "nobody"}, {Server: "h:25", From: "a@b.c", Security: "some"}} {
		if err := bad.Check(); !Permanent(err) {
			t.Errorf("settings %d: %v, want ErrSettings", i, err)
		}
	}
	for _, to := range []string{"", "nobody", strings.Repeat("a@b.c,", 101) + "a@b.c", "a@b.c\r\nRCPT TO:<x@y.z>"} {
		if _, err := m.Send(t.Context(), Message{To: to}); !Permanent(err) {
			t.Errorf("to %.20q: %v, want ErrSettings", to, err)
		}
	}
}

package media

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"os"
	"slices"
	"strings"
	"time"
)

// The ways to secure a connection to a mail server.
const (
	// StartTLS begins in the clear and refuses to go on without TLS.
	StartTLS = "starttls"
	// TLS speaks TLS from the first byte.
	TLS = "tls"
	// NoTLS sends everything in the clear; passwords are sent to loopback addresses only.
	NoTLS = "none"
)

// mailTimeout bounds one delivery when the context has no deadline.
const mailTimeout = 30 * time.Second

// maxRecipients bounds the recipients of one mail.
const maxRecipients = 100

// Mail sends by SMTP (RFC 5321), text in UTF-8.
type Mail struct {
	// Server is host:port.
	Server string
	// Security is StartTLS, TLS or NoTLS; empty is StartTLS.
	Security string
	// From is the sender: "Name <address>" or the address alone.
	From string
	// Hello is the name given in EHLO; empty is the machine's.
	Hello string
	// User and Password, if User is not empty, authenticate with what the server offers of PLAIN and LOGIN.
	User, Password string
	// CAFile is a PEM file with the authorities that are trusted besides the system's.
	CAFile string
	// HTML sends the body as HTML.
	HTML bool
}

// Check reports what is wrong with the settings, without a connection.
func (s *Mail) Check() error {
	if _, _, err := net.SplitHostPort(s.Server); err != nil {
		return fmt.Errorf("server is %q, expected host:port, such as mail.example.com:587: %w", s.Server, ErrSettings)
	}
	switch s.Security {
	case "", StartTLS, TLS, NoTLS:
	default:
		return fmt.Errorf("security is %q, expected starttls, tls or none: %w", s.Security, ErrSettings)
	}
	if _, err := mail.ParseAddress(s.From); err != nil {
		return fmt.Errorf("from is %q, expected an address, such as \"Tidemark <tidemark@example.com>\": %w", s.From, ErrSettings)
	}
	return nil
}

// CheckRecipients reports whether a text is a list of mail addresses.
func CheckRecipients(text string) error {
	list, err := mail.ParseAddressList(text)
	if err != nil {
		return fmt.Errorf("%q is no mail address: %w", text, err)
	}
	if len(list) > maxRecipients {
		return fmt.Errorf("%d recipients, expected at most %d", len(list), maxRecipients)
	}
	return nil
}

// Send implements Sender. To may hold several addresses with commas between.
func (s *Mail) Send(ctx context.Context, m Message) (string, error) {
	if err := s.Check(); err != nil {
		return "", err
	}
	from, err := mail.ParseAddress(s.From)
	if err != nil {
		return "", fmt.Errorf("from: %w", err)
	}
	to, err := mail.ParseAddressList(m.To)
	if err != nil || len(to) > maxRecipients {
		return "", fmt.Errorf("%q is no list of 1 to %d mail addresses: %w", oneLine(m.To, 200), maxRecipients, ErrSettings)
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(mailTimeout)
	}
	client, stop, err := s.connect(ctx, deadline)
	if err != nil {
		return "", err
	}
	defer stop()
	defer client.Close() //nolint:errcheck // after Quit it is closed already
	if err := s.authenticate(client); err != nil {
		return "", err
	}
	if err := client.Mail(from.Address); err != nil {
		return "", fmt.Errorf("the mail server refused the sender %s: %w", from.Address, err)
	}
	for _, a := range to {
		if err := client.Rcpt(a.Address); err != nil {
			return "", fmt.Errorf("the mail server refused the recipient %s: %w", a.Address, err)
		}
	}
	w, err := client.Data()
	if err == nil {
		_, err = w.Write(s.content(from, to, m))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return "", fmt.Errorf("the mail server refused the message: %w", err)
	}
	// The message is accepted; an error of QUIT must not make it be sent again.
	_ = client.Quit()
	return "accepted by " + s.Server, nil
}

// connect dials, and secures the connection. The function ends the watch over ctx.
func (s *Mail) connect(ctx context.Context, deadline time.Time) (*smtp.Client, func(), error) {
	host, _, _ := net.SplitHostPort(s.Server)
	settings, err := s.tlsConfig(host)
	if err != nil {
		return nil, nil, err
	}
	dialer := &net.Dialer{Deadline: deadline}
	conn, err := dialer.DialContext(ctx, "tcp", s.Server)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the mail server %s: %w", s.Server, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	fail := func(what string, err error) (*smtp.Client, func(), error) {
		stop()
		_ = conn.Close()
		return nil, nil, fmt.Errorf("%s %s: %w", what, s.Server, err)
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return fail("connect to the mail server", err)
	}
	if s.Security == TLS {
		conn = tls.Client(conn, settings)
	}
	client, err := smtp.NewClient(conn, host)
	if err != nil {
		return fail("greet the mail server", err)
	}
	hello := s.Hello
	if hello == "" {
		if hello, err = os.Hostname(); err != nil || hello == "" {
			hello = "localhost"
		}
	}
	if err := client.Hello(hello); err != nil {
		return fail("greet the mail server", err)
	}
	if s.Security == "" || s.Security == StartTLS {
		if ok, _ := client.Extension("STARTTLS"); !ok {
			return fail("secure the connection to", errors.New("it does not offer STARTTLS; set security to tls or none"))
		}
		if err := client.StartTLS(settings); err != nil {
			return fail("secure the connection to", err)
		}
	}
	return client, func() { stop() }, nil
}

func (s *Mail) tlsConfig(host string) (*tls.Config, error) {
	c := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if s.CAFile == "" {
		return c, nil
	}
	pem, err := os.ReadFile(s.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the mail server's authorities: %w", err)
	}
	if c.RootCAs, err = x509.SystemCertPool(); err != nil {
		c.RootCAs = x509.NewCertPool()
	}
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM: %w", s.CAFile, ErrSettings)
	}
	return c, nil
}

func (s *Mail) authenticate(c *smtp.Client) error {
	if s.User == "" {
		return nil
	}
	_, offered := c.Extension("AUTH")
	host, _, _ := net.SplitHostPort(s.Server)
	var auth smtp.Auth
	switch methods := strings.Fields(strings.ToUpper(offered)); {
	case slices.Contains(methods, "PLAIN"):
		auth = smtp.PlainAuth("", s.User, s.Password, host)
	case slices.Contains(methods, "LOGIN"):
		auth = &loginAuth{user: s.User, password: s.Password, host: host}
	default:
		return fmt.Errorf("the mail server %s offers %q to authenticate, expected PLAIN or LOGIN", s.Server, offered)
	}
	if err := c.Auth(auth); err != nil {
		return fmt.Errorf("authenticate as %s at %s: %w", s.User, s.Server, err)
	}
	return nil
}

// loginAuth is the LOGIN mechanism, which some servers offer alone: the user, then the password, each when asked
// (draft-murchison-sasl-login).
type loginAuth struct{ user, password, host string }

// Start implements smtp.Auth. As smtp.PlainAuth it sends no password in the clear but to loopback.
func (a *loginAuth) Start(server *smtp.ServerInfo) (string, []byte, error) {
	if !server.TLS && a.host != "localhost" && a.host != "127.0.0.1" && a.host != "::1" {
		return "", nil, errors.New("unencrypted connection")
	}
	return "LOGIN", nil, nil
}

// Next implements smtp.Auth.
func (a *loginAuth) Next(asked []byte, more bool) ([]byte, error) {
	if !more {
		return nil, nil
	}
	switch question := strings.ToLower(string(asked)); {
	case strings.HasPrefix(question, "user"):
		return []byte(a.user), nil
	case strings.HasPrefix(question, "pass"):
		return []byte(a.password), nil
	}
	return nil, fmt.Errorf("the server asked for %q", oneLine(string(asked), 40))
}

// content is the message with its headers (RFC 5322).
func (s *Mail) content(from *mail.Address, to []*mail.Address, m Message) []byte {
	var b bytes.Buffer
	header := func(name, value string) { fmt.Fprintf(&b, "%s: %s\r\n", name, oneLine(value, 4<<10)) }
	header("From", from.String())
	names := make([]string, len(to))
	for i, a := range to {
		names[i] = a.String()
	}
	// Folded, because lines are bounded.
	b.WriteString("To: " + strings.Join(names, ",\r\n ") + "\r\n")
	b.WriteString("Subject: " + encodeSubject(m.Subject) + "\r\n")
	header("Date", time.Now().Format(time.RFC1123Z))
	domain := "tidemark.invalid"
	if _, after, ok := strings.Cut(from.Address, "@"); ok {
		domain = after
	}
	if m.ID != "" {
		header("Message-ID", "<"+m.ID+"@"+domain+">")
	}
	if m.Thread != "" && m.Thread != m.ID {
		header("In-Reply-To", "<"+m.Thread+"@"+domain+">")
		header("References", "<"+m.Thread+"@"+domain+">")
	}
	// Out-of-office answers must not come back (RFC 3834).
	header("Auto-Submitted", "auto-generated")
	header("MIME-Version", "1.0")
	kind := "text/plain"
	if s.HTML {
		kind = "text/html"
	}
	header("Content-Type", kind+"; charset=UTF-8")
	header("Content-Transfer-Encoding", "quoted-printable")
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	_, _ = w.Write([]byte(m.Body)) // a buffer takes everything
	_ = w.Close()
	b.WriteString("\r\n")
	return b.Bytes()
}

// encodeSubject makes a header value of any text (RFC 2047). At most MaxSubjectBytes go in, so that the line stays below
// the 998 bytes of RFC 5322 when nothing needs encoding; encoded words are folded, one a line.
func encodeSubject(text string) string {
	encoded := mime.QEncoding.Encode("utf-8", strings.TrimSpace(oneLine(text, MaxSubjectBytes)))
	return strings.ReplaceAll(encoded, "?= =?", "?=\r\n =?")
}

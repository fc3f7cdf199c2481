package scrape

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"tidemark/config"
	"tidemark/internal/guard"
)

// maxSecretBytes bounds a file with a password or token.
const maxSecretBytes = 64 << 10

// client asks servers as a job says. It sets credentials as a transport, so that a redirect to another host does not get them.
type client struct {
	config    *config.ScrapeHTTP
	dialer    *net.Dialer
	transport *http.Transport
	http      *http.Client
}

func newClient(c *config.ScrapeHTTP, rules *guard.Rules) (*client, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.TLSConfig.ServerName, InsecureSkipVerify: c.TLSConfig.InsecureSkipVerify} //nolint:gosec // the administrator's choice
	if c.TLSConfig.CAFile != "" {
		pem, err := os.ReadFile(c.TLSConfig.CAFile)
		if err != nil {
			return nil, fmt.Errorf("scrape: tls_config.ca_file: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("scrape: tls_config.ca_file: %s holds no certificate in PEM", c.TLSConfig.CAFile)
		}
	}
	if c.TLSConfig.CertFile != "" {
		// Read with each handshake, so that a renewed certificate is taken up.
		t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(c.TLSConfig.CertFile, c.TLSConfig.KeyFile)
			return &pair, err
		}
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: rules.Control}
	cl := &client{config: c, dialer: dialer, transport: &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: t, MaxIdleConnsPerHost: 1, IdleConnTimeout: keepFor, DisableCompression: true,
		MaxResponseHeaderBytes: maxHeaderBytes, ForceAttemptHTTP2: true,
	}}
	cl.http = &http.Client{Transport: cl}
	if !cl.follows() {
		cl.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return cl, nil
}

// RoundTrip adds credentials, unless a redirect led to another host.
func (c *client) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Response != nil && r.Response.Request != nil && r.Response.Request.URL.Host != r.URL.Host {
		return c.transport.RoundTrip(r)
	}
	if c.config.BasicAuth != nil || c.config.Authorization != nil {
		r = r.Clone(r.Context())
		if err := c.authorize(r); err != nil {
			return nil, err
		}
	}
	return c.transport.RoundTrip(r)
}

// follows reports whether redirects are followed.
func (c *client) follows() bool { return c.config.FollowRedirects == nil || *c.config.FollowRedirects }

// authorize adds credentials to a request.
func (c *client) authorize(r *http.Request) error {
	var err error
	switch {
	case c.config.BasicAuth != nil:
		password := c.config.BasicAuth.Password
		if c.config.BasicAuth.PasswordFile != "" {
			if password, err = secret(c.config.BasicAuth.PasswordFile); err != nil {
				return err
			}
		}
		r.SetBasicAuth(c.config.BasicAuth.Username, password)
	case c.config.Authorization != nil:
		credentials, kind := c.config.Authorization.Credentials, c.config.Authorization.Type
		if c.config.Authorization.CredentialsFile != "" {
			if credentials, err = secret(c.config.Authorization.CredentialsFile); err != nil {
				return err
			}
		}
		if kind == "" {
			kind = "Bearer"
		}
		r.Header.Set("Authorization", kind+" "+credentials)
	}
	return nil
}

// secret reads a file with each request, so that a new secret needs no restart.
func secret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	b, err := io.ReadAll(io.LimitReader(f, maxSecretBytes))
	return strings.TrimSpace(string(b)), err
}

// unpackers are readers with their windows, 40 KiB each.
var unpackers = sync.Pool{New: func() any { return new(gzip.Reader) }}

// errTooLarge says that an answer is over a limit.
var errTooLarge = errors.New("the answer is larger than allowed")

// errRedirect says that an answer is a redirect that is to be followed.
var errRedirect = errors.New("the target redirects")

// read asks and returns the body, appended to dst, with its content type. A target without encryption is asked over its own line, unless it
// redirects.
func (c *client) read(r *http.Request, l *line, limit int64, dst []byte) (body []byte, contentType string, err error) {
	if c.config.EnableCompression == nil || *c.config.EnableCompression {
		r.Header.Set("Accept-Encoding", "gzip")
	}
	if l == nil {
		answer, err := c.http.Do(r)
		if err != nil {
			return nil, "", err
		}
		defer answer.Body.Close() //nolint:errcheck // it was only read
		return bodyOf(answer, limit, dst)
	}
	// The credentials are for this request only: a redirect to another host does not get them.
	own := r.Clone(r.Context())
	if err := c.authorize(own); err != nil {
		return nil, "", err
	}
	err = l.get(r.Context(), own, func(answer *http.Response) error {
		if c.follows() && answer.Header.Get("Location") != "" && answer.StatusCode >= 300 && answer.StatusCode < 400 {
			return errRedirect
		}
		var err error
		body, contentType, err = bodyOf(answer, limit, dst)
		return err
	})
	if errors.Is(err, errRedirect) {
		return c.read(r, nil, limit, dst)
	}
	return body, contentType, err
}

// bodyOf reads the body of an answer.
func bodyOf(answer *http.Response, limit int64, dst []byte) ([]byte, string, error) {
	if answer.StatusCode != http.StatusOK {
		return nil, "", fmt.Errorf("server returned HTTP status %s", answer.Status)
	}
	var body io.Reader = answer.Body
	if answer.Header.Get("Content-Encoding") == "gzip" {
		// A little more than the limit is let through packed, so that what does not shrink is judged unpacked.
		unpacked := unpackers.Get().(*gzip.Reader)
		defer unpackers.Put(unpacked)
		if err := unpacked.Reset(io.LimitReader(answer.Body, limit+4096)); err != nil {
			return nil, "", fmt.Errorf("unpack the answer: %w", err)
		}
		body = unpacked
	}
	dst, err := appendAll(dst, io.LimitReader(body, limit+1))
	if err != nil {
		return nil, "", fmt.Errorf("read the answer: %w", err)
	}
	if int64(len(dst)) > limit {
		return nil, "", fmt.Errorf("%w: more than %s (body_size_limit)", errTooLarge, config.FormatSize(limit))
	}
	return dst, answer.Header.Get("Content-Type"), nil
}

func appendAll(dst []byte, r io.Reader) ([]byte, error) {
	if cap(dst) == 0 {
		dst = make([]byte, 0, 16<<10)
	}
	for {
		if len(dst) == cap(dst) {
			dst = append(dst, 0)[:len(dst)]
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
}

package media

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// maxRequestBytes bounds the body that a webhook sends.
const maxRequestBytes = 1 << 20

// Webhook sends JSON by HTTP.
type Webhook struct {
	// URL may hold macros behind its host; their values are escaped. It may also begin with {ALERT.SENDTO} or {SECRET.…} for a whole
	// address.
	URL string
	// Method is POST, PUT, PATCH or GET; empty is POST. GET has no body.
	Method string
	// Headers may hold macros in their values.
	Headers map[string]string
	// Body is any value of JSON; macros in its texts are expanded, so that a value cannot break out of its text.
	Body any
	// Expect, if not empty, must occur in the answer.
	Expect string
	// Allow are networks that the webhook may reach although they are not public.
	Allow []netip.Prefix

	client *http.Client
}

// NewWebhook returns a webhook with a client of its own. It takes over what w points to.
func NewWebhook(w *Webhook) (*Webhook, error) {
	if err := w.Check(); err != nil {
		return nil, err
	}
	w.client = guardedClient(w.Allow)
	return w, nil
}

// Check reports what is wrong with the settings.
func (w *Webhook) Check() error {
	switch w.Method {
	case "", http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodGet:
	default:
		return fmt.Errorf("method is %q, expected POST, PUT, PATCH or GET: %w", w.Method, ErrSettings)
	}
	for name := range w.Headers {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("header %q is no name of a header: %w", name, ErrSettings)
		}
	}
	if strings.HasPrefix(w.URL, "{ALERT.SENDTO}") || strings.HasPrefix(w.URL, "{SECRET.") {
		return nil
	}
	if u, err := url.Parse(w.URL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("url is %q, expected http:// or https:// and a host: %w", w.URL, ErrSettings)
	}
	return nil
}

// Close drops idle connections.
func (w *Webhook) Close() { w.client.CloseIdleConnections() }

// Send implements Sender.
func (w *Webhook) Send(ctx context.Context, m Message) (string, error) {
	request, err := w.request(ctx, &m)
	if err != nil {
		return "", err
	}
	response, err := w.client.Do(request)
	if err != nil {
		// The URL may hold a token; its host says enough.
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return "", fmt.Errorf("%s %s: %w", request.Method, request.URL.Host, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return "", fmt.Errorf("read the answer of %s: %w", request.URL.Host, err)
	}
	told := strings.TrimSpace(response.Status + " " + shorten(answer))
	switch {
	case response.StatusCode < 200 || response.StatusCode > 299:
		return told, fmt.Errorf("%s answered %s", request.URL.Host, told)
	case w.Expect != "" && !bytes.Contains(answer, []byte(w.Expect)):
		return told, fmt.Errorf("%s answered %s, expected %q in it", request.URL.Host, told, w.Expect)
	}
	return told, nil
}

func (w *Webhook) request(ctx context.Context, m *Message) (*http.Request, error) {
	address, err := w.address(m)
	if err != nil {
		return nil, err
	}
	method := w.Method
	if method == "" {
		method = http.MethodPost
	}
	var body []byte
	if method != http.MethodGet {
		if body, err = json.Marshal(expandJSON(w.Body, m, 0)); err != nil {
			return nil, fmt.Errorf("body: %w: %w", err, ErrSettings)
		}
		if len(body) > maxRequestBytes {
			return nil, fmt.Errorf("the body has %d bytes, expected at most %d: %w", len(body), maxRequestBytes, ErrSettings)
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("the url cannot be used: %w", ErrSettings)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json; charset=utf-8")
	}
	request.Header.Set("User-Agent", "Tidemark")
	if m.ID != "" {
		// Receivers that know this header take a message once, also when it is sent again.
		request.Header.Set("Idempotency-Key", m.ID)
	}
	for name, value := range w.Headers {
		request.Header.Set(name, strings.TrimSpace(oneLine(m.expand(value), 8<<10)))
	}
	return request, nil
}

// address expands the macros of the URL.
func (w *Webhook) address(m *Message) (string, error) {
	// The first part is the host, or the macro that holds it: it is not escaped.
	first := strings.Index(w.URL, "://") + len("://")
	if strings.HasPrefix(w.URL, "{") {
		first = 0
	}
	end := strings.IndexAny(w.URL[first:], "/?#")
	if end < 0 {
		end = len(w.URL) - first
	}
	text := w.URL[:first+end]
	if first == 0 {
		text = m.expand(text)
	}
	text += expandEscaped(w.URL[first+end:], m)
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", fmt.Errorf("the url of the message is no http:// or https:// address: %w", ErrSettings)
	}
	return u.String(), nil
}

// expandEscaped expands the macros of a path or query, escaping each value.
func expandEscaped(text string, m *Message) string {
	var b strings.Builder
	for {
		open := strings.IndexByte(text, '{')
		end := strings.IndexByte(text[max(open, 0):], '}')
		if open < 0 || end < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:open])
		b.WriteString(url.QueryEscape(m.expand(text[open : open+end+1])))
		text = text[open+end+1:]
	}
}

// maxDepth bounds the nesting of a body.
const maxDepth = 32

// expandJSON expands the macros in the texts of a JSON value. Names of members stay.
func expandJSON(value any, m *Message, depth int) any {
	if depth > maxDepth {
		return nil
	}
	switch v := value.(type) {
	case string:
		return m.expand(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = expandJSON(v[i], m, depth+1)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name := range v {
			out[name] = expandJSON(v[name], m, depth+1)
		}
		return out
	}
	return value
}

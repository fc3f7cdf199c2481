package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// remote is a running server that a command speaks to.
type remote struct {
	http   string
	asJSON bool
}

const (
	// remoteTimeout bounds one request, maxRemoteAnswer its answer.
	remoteTimeout   = time.Minute
	maxRemoteAnswer = 64 << 20
)

func (r *remote) add(c *cobra.Command) {
	f := c.PersistentFlags()
	f.StringVar(&r.http, "http", "127.0.0.1:8420", "address of the running server, host:port or https://host:port")
	f.BoolVar(&r.asJSON, "json", false, "print the server's answer as JSON")
}

// call sends one request and decodes the answer into into; what is the command for messages.
func (r *remote) call(ctx context.Context, method, path string, body, into any) ([]byte, error) {
	if body == nil {
		return r.send(ctx, sending{method: method, path: path}, into)
	}
	sent, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return r.send(ctx, sending{method, path, "application/json", sent}, into)
}

// sending is one request; kind is the type of its body, empty for none.
type sending struct {
	method, path, kind string
	body               []byte
}

// send sends one request and decodes the answer into into.
func (r *remote) send(ctx context.Context, s sending, into any) ([]byte, error) {
	base := r.http
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	request, err := http.NewRequestWithContext(ctx, s.method, base+s.path, bytes.NewReader(s.body))
	if err != nil {
		return nil, usagef("--http %q: expected host:port", r.http)
	}
	if s.kind != "" {
		request.Header.Set("Content-Type", s.kind)
	}
	authorize(request)
	client := http.Client{Timeout: remoteTimeout}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("no answer from the server at %s: %w; is it running?", r.http, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxRemoteAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the server's answer: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server at %s: %w", r.http, refusal(answer.StatusCode, text, request.Header.Get("Authorization") != ""))
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			return nil, fmt.Errorf("read the server's answer: %w", err)
		}
	}
	return text, nil
}

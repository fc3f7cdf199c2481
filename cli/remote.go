package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"tidemark/client"
)

// remote is a running server that a command speaks to.
type remote struct {
	http   string
	asJSON bool
}

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
	c, err := newClient(ctx, r.http, nil)
	if err != nil {
		return nil, err
	}
	text, err := c.Send(ctx, client.Request{Method: s.method, Path: s.path, Body: s.body, ContentType: s.kind})
	if err != nil {
		return nil, toldBy(r.http, err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			return nil, fmt.Errorf("read the server's answer: %w", err)
		}
	}
	return text, nil
}

// newClient returns a client of the server that --http names, with the token of the flags or of the environment.
func newClient(ctx context.Context, address string, own *http.Client) (*client.Client, error) {
	token, _ := ctx.Value(tokenKey{}).(string)
	c, err := client.New(client.Options{Address: address, Token: token, HTTP: own})
	if err != nil {
		return nil, usagef("--http %q: %w", address, err)
	}
	return c, nil
}

// toldBy says which server an error is of, and what to do when it does not answer or wants a token.
func toldBy(address string, err error) error {
	if e, ok := errors.AsType[*client.Error](err); ok {
		return fmt.Errorf("the server at %s: %w", address, refusal(e))
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%w; is it running?", err)
	}
	return err
}

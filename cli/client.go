package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidemark/client"
	"tidemark/server"
)

// defaultHTTP is where a server is looked for.
const defaultHTTP = "127.0.0.1:8420"

// tokenVariable is the environment variable with the token for verbs that call a server.
const tokenVariable = "TIDEMARK_TOKEN"

type tokenKey struct{}

// maxTokenBytes bounds a file with a token.
const maxTokenBytes = 64 << 10

// withToken puts the token of the flags, or of the environment, into the context of a command. All verbs that call a server take it from there.
func withToken(c *cobra.Command, token, file string) error {
	switch own := c.CommandPath(); {
	case file != "" && (own == "tidemark server" || own == "tidemark agent" || own == "tidemark proxy" || own == "tidemark up"):
		return usagef("--token-file is for verbs that call a server; the token that a server asks for is in the file of http.token_file")
	case token != "" && file != "":
		return usagef("--token and --token-file are both given: expected one of them")
	case file != "":
		var err error
		if token, err = readTokenText(file); err != nil {
			return err
		}
	case token == "":
		token = os.Getenv(tokenVariable)
	}
	c.SetContext(context.WithValue(c.Context(), tokenKey{}, token))
	return nil
}

// readTokenText reads the token in a file, whose last line may end.
func readTokenText(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", usagef("--token-file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxTokenBytes+1))
	if err != nil {
		return "", fmt.Errorf("--token-file %s: %w", name, err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || len(text) > maxTokenBytes || strings.ContainsAny(token, "\r\n") {
		return "", usagef("--token-file %s: expected one line with a token", name)
	}
	return token, nil
}

// authorize puts the token into a request.
func authorize(r *http.Request) {
	if token, _ := r.Context().Value(tokenKey{}).(string); token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
}

// baseURL is the address of a server as a URL; without a scheme it is http.
func baseURL(address string) string {
	if strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://") {
		return strings.TrimSuffix(address, "/")
	}
	return "http://" + address
}

// target is a running server, or the folder of a stopped one, whose routes of users are called.
type target struct {
	http, data string
}

// addFlags adds the flags that name the target.
func (t *target) addFlags(c *cobra.Command) {
	c.PersistentFlags().StringVar(&t.http, "http", "", "address of a running server (default "+defaultHTTP+" unless --data is given)")
	c.PersistentFlags().StringVar(&t.data, "data", "", "data folder of a stopped server")
}

const (
	// callTimeout bounds one call.
	callTimeout = time.Minute
	// maxCallAnswer bounds what is read of an answer.
	maxCallAnswer = 64 << 20
)

// call sends one request with a JSON body, if there is one, and decodes the answer.
func (t *target) call(c *cobra.Command, method, path string, body, into any) error {
	if t.http != "" && t.data != "" {
		return usagef("give --http for a running server or --data for a stopped one, not both")
	}
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return err
		}
	}
	status, text, err := t.send(c, method, path, sent)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		token, _ := c.Context().Value(tokenKey{}).(string)
		return refusal(client.ReadError(status, text, token != ""))
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// refusal is what a server says that it does not do. Without a token its advice to sign in is no help here.
func refusal(e *client.Error) error {
	if e.Status == http.StatusUnauthorized && !e.TokenSent {
		return fmt.Errorf("no token was sent and one is needed: give it with --token-file FILE, --token or in %s (an administrator makes one with tidemark token create, or on the page)", tokenVariable)
	}
	return e
}

func (t *target) send(c *cobra.Command, method, path string, body []byte) (status int, text []byte, err error) {
	address := t.http
	if address == "" {
		address = defaultHTTP
	}
	ctx, cancel := context.WithTimeout(c.Context(), callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, baseURL(address)+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, usagef("--http %q: expected host:port", address)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if t.data != "" {
		return t.sendOffline(request)
	}
	authorize(request)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("no answer from the server at %s: %w; is it running? for a stopped one use --data", address, err)
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(io.LimitReader(answer.Body, maxCallAnswer))
	return answer.StatusCode, text, err
}

// sendOffline answers a request from the folder of a stopped server.
func (t *target) sendOffline(request *http.Request) (status int, text []byte, err error) {
	people, err := server.OpenPeople(request.Context(), t.data)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, people.Close()) }()
	request.Host = "localhost"
	answer := httptest.NewRecorder()
	people.Handler.ServeHTTP(answer, request)
	return answer.Code, answer.Body.Bytes(), nil
}

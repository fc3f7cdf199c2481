package standby

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tidemark/snapshot"
)

// ErrSeed says that a standby cannot go on from where it is: it must be seeded again.
var ErrSeed = errors.New("the standby must be seeded again")

// maxAnswerBytes bounds a JSON answer.
const maxAnswerBytes = 64 << 20

// Client calls another server.
type Client struct {
	// Address is host:port or a URL; Token may be empty.
	Address, Token string
	HTTP           *http.Client
}

// url is the base of the server's routes.
func (c *Client) url() string {
	if strings.Contains(c.Address, "://") {
		return strings.TrimSuffix(c.Address, "/")
	}
	return "http://" + c.Address
}

// open sends a request; answers other than 200 are errors with the server's words.
func (c *Client) open(ctx context.Context, method, path string, body any) (io.ReadCloser, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url()+path, content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	answer, err := c.HTTP.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	return nil, c.refusal(answer.StatusCode, text)
}

// RefusedError is a server's answer that it does not do something.
type RefusedError struct {
	Address, Code, Message string
	Status                 int
}

// Error is what the server says.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the server at %s: %s", e.Address, e.Message)
}

func (c *Client) refusal(status int, text []byte) error {
	var answer struct {
		Error struct{ Code, Message string }
	}
	if json.Unmarshal(text, &answer) != nil || answer.Error.Message == "" {
		answer.Error.Message = fmt.Sprintf("answered %d %s", status, http.StatusText(status))
	}
	err := error(&RefusedError{Address: c.Address, Code: answer.Error.Code, Message: answer.Error.Message, Status: status})
	if status == http.StatusGone {
		err = fmt.Errorf("%w: %w", ErrSeed, err)
	}
	return err
}

// call sends a request and decodes the answer into out, if that is not nil.
func (c *Client) call(ctx context.Context, method, path string, body, out any) error {
	answer, err := c.open(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer answer.Close()
	text, err := io.ReadAll(io.LimitReader(answer, maxAnswerBytes+1))
	if err == nil && len(text) > maxAnswerBytes {
		err = fmt.Errorf("more than %d bytes", maxAnswerBytes)
	}
	if err == nil && out != nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		return fmt.Errorf("the answer of %s: %w", c.Address, err)
	}
	return nil
}

// log asks for what comes behind a position.
func (c *Client) log(ctx context.Context, q *LogRequest) (*LogAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(q.WaitMs)*time.Millisecond+time.Minute)
	defer cancel()
	answer, err := c.open(ctx, http.MethodPost, "/api/standby/log", q)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	return readLogAnswer(answer)
}

// configuration asks for the pages that changed since a version; they stand behind the header.
func (c *Client) configuration(ctx context.Context, s *State, id string, have *ConfigurationHeader, wait bool) (*ConfigurationHeader, io.ReadCloser, error) {
	q := url.Values{
		"cluster": {s.Cluster}, "epoch": {fmt.Sprint(s.Epoch)}, "standby": {id}, "instance": {have.Instance}, "version": {fmt.Sprint(have.Version)},
	}
	if wait {
		q.Set("wait", "1")
	}
	answer, err := c.open(ctx, http.MethodGet, "/api/standby/configuration?"+q.Encode(), nil)
	if err != nil {
		return nil, nil, err
	}
	h := &ConfigurationHeader{}
	if err := readHeader(answer, h); err != nil {
		return nil, nil, errors.Join(err, answer.Close())
	}
	return h, answer, nil
}

// Moved is what a primary answers that handed over.
type Moved struct {
	// LSN is where its log ends.
	LSN uint64 `json:"lsn"`
}

// EpochRequest tells a server of an epoch.
type EpochRequest struct {
	Cluster string `json:"cluster"`
	Epoch   uint64 `json:"epoch"`
	// Standby names, at a handover, the one that becomes primary.
	Standby string `json:"standby,omitempty"`
	// Address is where the server with the epoch is reached; empty when that is not known.
	Address string `json:"address,omitempty"`
}

// HandOver asks a primary to stop taking values for a standby that becomes primary with an epoch.
func (c *Client) HandOver(ctx context.Context, q EpochRequest) (Moved, error) {
	var m Moved
	return m, c.call(ctx, http.MethodPost, "/api/standby/handover", q, &m)
}

// Fence tells a server of an epoch. The answer says whether it knows of a higher one.
func (c *Client) Fence(ctx context.Context, q EpochRequest) (Known, error) {
	var k Known
	return k, c.call(ctx, http.MethodPost, "/api/standby/fence", q, &k)
}

// Known is what a server says to others of its cluster.
type Known struct {
	Epoch uint64 `json:"epoch"`
	Role  Role   `json:"role"`
	// FencedBy is the highest epoch of another server that it knows of; zero for none.
	FencedBy uint64 `json:"fenced_by,omitempty"`
	// Address is where the server with the highest epoch is reached; empty when that is not known.
	Address string `json:"address,omitempty"`
}

// Highest is the highest epoch that a server knows of.
func (k Known) Highest() uint64 { return max(k.Epoch, k.FencedBy) }

// Epoch asks a server of the same cluster for its epoch.
func (c *Client) Epoch(ctx context.Context, cluster string) (Known, error) {
	var k Known
	return k, c.call(ctx, http.MethodGet, "/api/standby/epoch?cluster="+url.QueryEscape(cluster), nil, &k)
}

// remoteSnapshot is a snapshot on another server, as a source of files.
type remoteSnapshot struct {
	client   *Client
	name     string
	manifest *snapshot.Manifest
}

// Manifest implements snapshot.Source.
func (s *remoteSnapshot) Manifest() *snapshot.Manifest { return s.manifest }

// Open implements snapshot.Source.
func (s *remoteSnapshot) Open(ctx context.Context, f *snapshot.File) (io.ReadCloser, error) {
	return s.client.open(ctx, http.MethodGet, "/api/storage/snapshots/"+url.PathEscape(s.name)+"/file?path="+url.QueryEscape(f.Path), nil)
}

// takeSnapshot has a server make a snapshot.
func (c *Client) takeSnapshot(ctx context.Context, name string) (*remoteSnapshot, error) {
	s := &remoteSnapshot{client: c, name: name}
	if err := c.call(ctx, http.MethodPost, "/api/storage/snapshots", map[string]string{"name": name}, nil); err != nil {
		return nil, err
	}
	answer, err := c.open(ctx, http.MethodGet, "/api/storage/snapshots/"+url.PathEscape(name), nil)
	if err != nil {
		return nil, errors.Join(err, s.remove(ctx))
	}
	defer answer.Close()
	text, err := io.ReadAll(io.LimitReader(answer, maxAnswerBytes))
	if err == nil {
		s.manifest, err = snapshot.DecodeManifest(text)
	}
	if err != nil {
		return nil, errors.Join(err, s.remove(ctx))
	}
	return s, nil
}

func (s *remoteSnapshot) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return s.client.call(ctx, http.MethodDelete, "/api/storage/snapshots/"+url.PathEscape(s.name), nil, nil)
}

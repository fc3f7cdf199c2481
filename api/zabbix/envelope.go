package zabbix

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"

	"tidemark/access"
	"tidemark/api"
	"tidemark/model"
)

const (
	// maxBytes bounds the body of callers who did not say in a header who they are, maxTrustedBytes that of editors who did.
	maxBytes        = 1 << 20
	maxTrustedBytes = 64 << 20
	// maxCalls bounds a batch.
	maxCalls = 1000
	// maxAnswerBytes bounds the answer to one request with all calls of its batch.
	maxAnswerBytes = 128 << 20
)

// rpcError is an error as clients of Zabbix read it: some look at Code, most at a part of Data.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    string `json:"data"`
}

// Error returns the part that says what was wrong.
func (e *rpcError) Error() string { return e.Data }

func invalidRequest(data string) *rpcError { return &rpcError{-32600, "Invalid request.", data} }

func noMethod(data string) *rpcError { return &rpcError{-32601, "Method not found.", data} }

func invalidParams(format string, args ...any) error {
	return &rpcError{-32602, "Invalid params.", fmt.Sprintf(format, args...)}
}

func applicationError(data string) *rpcError { return &rpcError{-32500, "Application error.", data} }

// The texts by which clients know that they must sign in again or may not.
const (
	textTerminated = "Session terminated, re-login, please."
	textNotAllowed = "No permissions to referred object or it does not exist!"
)

var (
	errParse      = &rpcError{-32700, "Parse error", "Invalid JSON. An error occurred on the server while parsing the JSON text."}
	errNobody     = &rpcError{-32602, "Invalid params.", "Not authorized."}
	errTerminated = &rpcError{-32602, "Invalid params.", textTerminated}
	errNotAllowed = applicationError(textNotAllowed)
	errTooLarge   = applicationError(fmt.Sprintf("The answer has more than %d bytes; ask for less with ids, filter, output or limit.", maxAnswerBytes))
)

// asRPC gives any error the form of an answer.
func asRPC(err error) *rpcError {
	var known *rpcError
	if errors.As(err, &known) {
		return known
	}
	e := api.AsError(err)
	if e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity && e.Code != "limit" {
		return &rpcError{-32602, "Invalid params.", e.Message}
	}
	return applicationError(e.Message)
}

// request is one call as it is sent.
type request struct {
	JSONRPC json.RawMessage `json:"jsonrpc"`
	Method  json.RawMessage `json:"method"`
	Params  json.RawMessage `json:"params"`
	Auth    json.RawMessage `json:"auth"`
	ID      json.RawMessage `json:"id"`

	method string
	auth   string
}

// decodeRequests reads a body: one call, or a batch of them.
func decodeRequests(body []byte) (list []json.RawMessage, batch bool, err error) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || !json.Valid(body) {
		return nil, false, errParse
	}
	if body[0] != '[' {
		return []json.RawMessage{body}, false, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	if _, err := decoder.Token(); err != nil {
		return nil, false, errParse
	}
	for decoder.More() {
		if len(list) == maxCalls {
			return nil, false, invalidRequest(fmt.Sprintf("A batch has at most %d calls.", maxCalls))
		}
		var one json.RawMessage
		if err := decoder.Decode(&one); err != nil {
			return nil, false, errParse
		}
		list = append(list, one)
	}
	if len(list) == 0 {
		return nil, false, invalidRequest(`Invalid parameter "/": cannot be empty.`)
	}
	return list, true, nil
}

// decodeRequest reads one call.
func decodeRequest(text json.RawMessage) (*request, error) {
	r := new(request)
	if text[0] != '{' {
		return r, invalidRequest(`Invalid parameter "/": an array is expected.`)
	}
	if err := json.Unmarshal(text, r); err != nil {
		return r, errParse
	}
	if len(r.ID) > 0 && (r.ID[0] == '{' || r.ID[0] == '[' || len(r.ID) > 256) {
		r.ID = nil
		return r, invalidRequest(`Invalid parameter "/id": a string, number or null value is expected.`)
	}
	switch {
	case r.JSONRPC == nil:
		return r, invalidRequest(`Invalid parameter "/": the parameter "jsonrpc" is missing.`)
	case string(r.JSONRPC) != `"2.0"`:
		return r, invalidRequest(`Invalid parameter "/jsonrpc": value must be "2.0".`)
	case r.Method == nil:
		return r, invalidRequest(`Invalid parameter "/": the parameter "method" is missing.`)
	case json.Unmarshal(r.Method, &r.method) != nil || r.method == "":
		return r, invalidRequest(`Invalid parameter "/method": a character string is expected.`)
	case r.Params != nil && r.Params[0] != '{' && r.Params[0] != '[' && string(r.Params) != "null":
		return r, invalidRequest(`Invalid parameter "/params": an array is expected.`)
	case r.Auth != nil && json.Unmarshal(r.Auth, &r.auth) != nil:
		return r, invalidRequest(`Invalid parameter "/auth": a character string is expected.`)
	}
	return r, nil
}

// serve answers one request.
func (a *API) serve(w http.ResponseWriter, r *http.Request) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains([]string{"application/json", "application/json-rpc", "application/jsonrequest"}, kind) {
		api.WriteError(w, &api.Error{Status: http.StatusPreconditionFailed, Code: "content_type", Message: "expected Content-Type: application/json-rpc or application/json"})
		return
	}
	limit := int64(maxBytes)
	if who, err := a.identify(r, ""); err == nil && who.MostRole() >= model.Editor {
		limit = maxTrustedBytes
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		api.WriteError(w, api.BodyError(err))
		return
	}
	list, batch, err := decodeRequests(body)
	if err != nil {
		writeAnswer(w, appendAnswer(nil, nil, nil, err))
		return
	}
	var out []byte
	for _, text := range list {
		answer := a.one(r, text, maxAnswerBytes-len(out))
		if len(answer) == 0 {
			continue // a notification
		}
		if len(out) > 0 {
			out = append(out, ',')
		}
		out = append(out, answer...)
	}
	if batch && len(out) > 0 {
		out = append(append([]byte{'['}, out...), ']')
	}
	writeAnswer(w, out)
}

func writeAnswer(w http.ResponseWriter, out []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(out) // an error means that the caller went away
}

// one answers one call of a batch; empty for a notification, which has no id.
func (a *API) one(r *http.Request, text json.RawMessage, room int) []byte {
	sent, err := decodeRequest(text)
	if err != nil {
		return appendAnswer(nil, sent.ID, nil, err)
	}
	result, err := a.call(r, sent, room)
	var known *rpcError
	if err != nil && !errors.As(err, &known) {
		if id := api.Explain(r.Context(), err); id != "" {
			known = asRPC(err)
			known.Data = api.Named(known.Data, id)
			err = known
		}
	}
	if sent.ID == nil {
		return nil
	}
	return appendAnswer(nil, sent.ID, result, err)
}

// appendAnswer writes the envelope of an answer.
func appendAnswer(out []byte, id json.RawMessage, result []byte, err error) []byte {
	out = append(out, `{"jsonrpc":"2.0",`...)
	if err != nil {
		text, encodeErr := json.Marshal(asRPC(err))
		if encodeErr != nil {
			panic("zabbix: an error cannot be encoded: " + encodeErr.Error())
		}
		out = append(append(out, `"error":`...), text...)
	} else {
		out = append(append(out, `"result":`...), result...)
	}
	if id == nil {
		id = json.RawMessage("null")
	}
	return append(append(append(out, `,"id":`...), id...), '}')
}

// call is one call that is being answered.
type call struct {
	*API
	ctx context.Context //nolint:containedctx // a call lives as long as its request
	r   *http.Request
	// who is nil for methods that need nobody; visible is nil for somebody who sees all hosts.
	who     *access.Identity
	visible api.Visible
	// token is what the caller was let in with, for user.logout.
	token string
	// configuration is the same for the whole call.
	configuration Configuration
	*params
	// What is read once for a call.
	open         map[model.TriggerID][]model.Problem
	groupList    []Group
	templateList []Template
	content      map[model.HostID]*contents
	documents    map[model.HostID]*owner
	// pending are the hosts and templates that the call changes, states what becomes of hosts besides.
	pending []*owner
	states  []*hostState
	// renamed are triggers that the call changes, as they will be.
	renamed      map[model.TriggerID]object
	groupsByName map[string]uint64
	// hostKind is for hosts in answers of other objects.
	hostKind *kind[*model.Host]
	// room is how many bytes the answer may have.
	room int
}

// method is one line of the table of methods.
type method struct {
	// role is what a caller needs at least, on some host; NoRole stands for methods without sign-in.
	role model.Role
	// changes says that the audit log is told.
	changes bool
	fn      func(*call) ([]byte, error)
}

// call finds the method and who calls it, and calls it.
func (a *API) call(r *http.Request, sent *request, room int) ([]byte, error) {
	m, ok := methods[sent.method]
	if !ok {
		return nil, noMethod(fmt.Sprintf("Incorrect method %.100q.", sent.method))
	}
	p, err := newParams(sent.Params)
	if err != nil {
		return nil, err
	}
	c := &call{API: a, ctx: r.Context(), r: r, params: p, configuration: a.options.Configuration(), room: room}
	if m.role == model.NoRole {
		if sent.auth != "" && sent.method == "apiinfo.version" { // the others do no harm, and pyzabbix sends it
			return nil, invalidParams("The %q method must be called without the \"auth\" parameter.", sent.method)
		}
		return m.fn(c)
	}
	if c.who, err = a.identify(r, sent.auth); err != nil {
		return nil, err
	}
	if c.who.MostRole() < m.role {
		return nil, applicationError(fmt.Sprintf("No permissions to call %q: it needs the role %s, and %s has %s.", sent.method, m.role, c.who.Name, c.who.MostRole()))
	}
	c.token = cmpOr(sent.auth, bearer(r))
	c.visible = api.VisibleHosts(c.who, c.configuration.Hosts())
	c.ctx = access.With(c.ctx, c.who)
	return c.run(sent.method, m)
}

// endedByMistake follows the name of a method in the audit log when only some of a call's changes were made.
const endedByMistake = ", ended by a mistake"

// run calls the method when there is a free place, and tells the audit log.
func (c *call) run(name string, m method) ([]byte, error) {
	select {
	case c.slots <- struct{}{}:
	case <-c.ctx.Done():
		return nil, c.ctx.Err()
	}
	defer func() { <-c.slots }()
	if !m.changes {
		return m.fn(c)
	}
	ctx, changes := access.WithChanges(c.ctx)
	c.ctx = ctx
	out, err := m.fn(c)
	switch {
	case err == nil:
		c.options.Audit(c.ctx, name, c.r.RemoteAddr, changes)
	case changes.Some(): // what was changed before the mistake stays
		c.options.Audit(c.ctx, name+endedByMistake, c.r.RemoteAddr, changes)
	}
	return out, err
}

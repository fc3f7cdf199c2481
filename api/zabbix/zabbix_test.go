package zabbix

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tidemark/access"
	"tidemark/model"
)

// row is an object of tests.
type row struct {
	id   uint64
	name string
}

var rowKind = kind[row]{
	name: "row", id: "rowid",
	fields: []field[row]{
		{name: "rowid", number: true, get: func(r *row) string { return formatID(r.id) }},
		{name: "name", get: func(r *row) string { return r.name }},
	},
	selects: []selection[row]{{"selectTags", "tags", func(_ *call, o output, r *row) any { return pickTags(o, []model.Tag{{Name: "n", Value: r.name}}) }}},
}

func testCall(t *testing.T, text string) *call {
	t.Helper()
	p, err := newParams(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return &call{ctx: t.Context(), params: p, room: 1 << 20}
}

// TestAnswer_common reads the parameters that all calls of get share.
func TestAnswer_common(t *testing.T) {
	f := func(params, want string) {
		t.Helper()
		rows := []row{{9, "CPU load"}, {10, "Memory"}, {2, "CPU \"idle\""}}
		out, err := answer(testCall(t, params), &rowKind, rows)
		got := string(out)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", params, got, want)
		}
	}
	f(`{"output":["name"],"limit":1}`, `[{"rowid":"9","name":"CPU load"}]`)
	f(`{"output":["rowid"]}`, `[{"rowid":"9"},{"rowid":"10"},{"rowid":"2"}]`)
	f(`{"output":"extend","filter":{"name":["Memory","x"]}}`, `[{"rowid":"10","name":"Memory"}]`)
	f(`{"filter":{"rowid":2}}`, `[{"rowid":"2","name":"CPU \"idle\""}]`)
	f(`{"filter":{"name":null},"countOutput":true}`, `"3"`)
	f(`{"output":"count"}`, `"3"`)
	f(`{"output":["rowid"],"sortfield":"rowid"}`, `[{"rowid":"2"},{"rowid":"9"},{"rowid":"10"}]`)
	f(`{"output":["rowid"],"sortfield":["rowid"],"sortorder":["DESC"]}`, `[{"rowid":"10"},{"rowid":"9"},{"rowid":"2"}]`)
	f(`{"output":["rowid"],"sortfield":"name","sortorder":"ASC"}`, `[{"rowid":"2"},{"rowid":"9"},{"rowid":"10"}]`)
	f(`{"output":["rowid"],"search":{"name":"cpu"}}`, `[{"rowid":"9"},{"rowid":"2"}]`)
	f(`{"output":["rowid"],"search":{"name":"cpu"},"excludeSearch":true}`, `[{"rowid":"10"}]`)
	f(`{"output":["rowid"],"search":{"name":["cpu","load"]}}`, `[{"rowid":"9"}]`)
	f(`{"output":["rowid"],"search":{"name":["mem","load"]},"searchByAny":1}`, `[{"rowid":"9"},{"rowid":"10"}]`)
	f(`{"output":["rowid"],"search":{"name":"load"},"startSearch":true}`, `[]`)
	f(`{"output":["rowid"],"search":{"name":"c*d"},"searchWildcardsEnabled":true}`, `[{"rowid":"9"}]`)
	f(`{"output":["rowid"],"search":{"name":"cpu"},"searchWildcardsEnabled":true}`, `[]`)
	f(`{"output":["rowid"],"preservekeys":true,"limit":1}`, `{"9":{"rowid":"9"}}`)
	f(`{"output":["rowid"],"preservekeys":true,"filter":{"name":"none"}}`, `[]`)
	f(`{"output":["rowid"],"limit":1,"selectTags":"extend"}`, `[{"rowid":"9","tags":[{"tag":"n","value":"CPU load"}]}]`)
	f(`{"output":["rowid"],"limit":1,"selectTags":"count"}`, `[{"rowid":"9","tags":"1"}]`)
	f(`{"unknown":1}`, `Invalid parameter "/": unexpected parameter "unknown".`)
	f(`{"filter":{"color":"red"}}`, `Invalid parameter "/filter": a row has no member "color" to look at.`)
	f(`{"limit":"many"}`, `Invalid parameter "/limit": a number from 0 to `+strconv.FormatInt(math.MaxInt64, 10)+` is expected.`)
	f(`{"sortfield":"color"}`, `Invalid parameter "/sortfield": cannot sort a row by "color".`)
	f(`{"output":"all"}`, `Invalid parameter "/output": value must be one of "extend", "count".`)
}

// TestAnswer_groupCount counts rows for each id that was asked for.
func TestAnswer_groupCount(t *testing.T) {
	rows := []row{{9, "b"}, {10, "a"}, {2, "b"}}
	f := func(asked idSet, params, want string) {
		t.Helper()
		k := rowKind
		k.groupings = []grouping[row]{
			{member: "nothingid"},
			{"letterid", asked, func(r *row) []uint64 { return []uint64{uint64(r.name[0]), 7} }},
		}
		out, err := answer(testCall(t, params), &k, rows)
		if err != nil || string(out) != want {
			t.Errorf("%v %s: %s %v, want %s", asked, params, out, err, want)
		}
	}
	f(idSet{'a': true, 'b': true, 'c': true}, `{"countOutput":true,"groupCount":true}`, `[{"letterid":"97","rowscount":"1"},{"letterid":"98","rowscount":"2"}]`)
	f(idSet{7: true}, `{"countOutput":true,"groupCount":true,"filter":{"name":"b"}}`, `[{"letterid":"7","rowscount":"2"}]`)
	f(nil, `{"countOutput":true,"groupCount":true}`, `[{"rowscount":"3"}]`)
	f(idSet{'a': true}, `{"countOutput":true}`, `"3"`)
	if _, err := answer(testCall(t, `{"countOutput":true,"groupCount":true}`), &rowKind, rows); err == nil {
		t.Error("a kind without groups is counted by group")
	}
}

// TestAnswer_tooLarge ends an answer that has no room.
func TestAnswer_tooLarge(t *testing.T) {
	c := testCall(t, `{}`)
	c.room = 100
	if _, err := answer(c, &rowKind, make([]row, 50)); err != errTooLarge { //nolint:errorlint // the value itself
		t.Errorf("got %v, want %v", err, errTooLarge)
	}
}

func TestMatchTags(t *testing.T) {
	tags := []model.Tag{{Name: "scope", Value: "capacity"}, {Name: "class", Value: "os"}}
	f := func(params string, want bool) {
		t.Helper()
		p, err := newParams(json.RawMessage(params))
		if err != nil {
			t.Fatal(err)
		}
		conditions, either := p.tags()
		if err := p.done(); err != nil {
			t.Error(params, err)
		}
		if got := matchTags(conditions, either, tags); got != want {
			t.Errorf("%s: %v, want %v", params, got, want)
		}
	}
	f(`{}`, true)
	f(`{"tags":[{"tag":"scope","value":"CAPA"}]}`, true)
	f(`{"tags":[{"tag":"scope","value":"capa","operator":1}]}`, false)
	f(`{"tags":[{"tag":"scope","value":"capacity","operator":"1"},{"tag":"class","value":"db"}]}`, false)
	f(`{"tags":[{"tag":"scope","value":"capacity","operator":"1"},{"tag":"class","value":"db"}],"evaltype":2}`, true)
	f(`{"tags":[{"tag":"class","value":"db"},{"tag":"class","value":"os"}]}`, true)
	f(`{"tags":[{"tag":"scope","value":"x","operator":2}]}`, true)
	f(`{"tags":[{"tag":"scope","value":"capacity","operator":3}]}`, false)
	f(`{"tags":[{"tag":"none","operator":4}]}`, false)
	f(`{"tags":[{"tag":"none","operator":5}]}`, true)
}

// noUsers is an access.Store without users.
type noUsers struct{ access.Store }

func (noUsers) LoadAccess(context.Context) (model.AccessLoaded, error) {
	return model.AccessLoaded{}, nil
}

// nobody is an interface whose caller comes from another machine and is not known.
func nobody(t testing.TB) *API {
	t.Helper()
	control, err := access.Open(t.Context(), access.Options{Store: noUsers{}, Token: "the-token-of-the-file-0123456789"})
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{Access: control, Configuration: func() Configuration { return nil }})
}

func post(a *API, body string) (int, string) {
	r := httptest.NewRequest(http.MethodPost, "/api_jsonrpc.php", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json-rpc")
	w := httptest.NewRecorder()
	a.serve(w, r)
	return w.Code, w.Body.String()
}

// TestServe_envelope is what comes before any method: forms of requests, errors, batches, sign-in.
func TestServe_envelope(t *testing.T) {
	a := nobody(t)
	f := func(body, want string) {
		t.Helper()
		if status, got := post(a, body); got != want || status != http.StatusOK {
			t.Errorf("%s:\n got %d %s\nwant %s", body, status, got, want)
		}
	}
	version := `{"jsonrpc":"2.0","result":"7.0.0","id":1}`
	f(`{"jsonrpc":"2.0","method":"apiinfo.version","params":[],"id":1}`, version)
	f(`{"jsonrpc":"2.0","method":"apiinfo.version","params":{},"auth":null,"id":1}`, version)
	f(`{"jsonrpc":"2.0","method":"apiinfo.version","id":"a<b"}`, `{"jsonrpc":"2.0","result":"7.0.0","id":"a<b"}`)
	f(`{"jsonrpc":"2.0","method":"apiinfo.version"}`, "")
	f(`[{"jsonrpc":"2.0","method":"apiinfo.version","id":1},{"jsonrpc":"2.0","method":"apiinfo.version"},{"jsonrpc":"2.0","method":"apiinfo.version","id":1}]`, "["+version+","+version+"]")
	f(`{"jsonrpc":"2.0","method":"apiinfo.version","auth":"x","id":1}`, `{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params.","data":"The \"apiinfo.version\" method must be called without the \"auth\" parameter."},"id":1}`)
	f(`{"jsonrpc":`, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error","data":"Invalid JSON. An error occurred on the server while parsing the JSON text."},"id":null}`)
	f(`{"method":"host.get","id":2}`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request.","data":"Invalid parameter \"/\": the parameter \"jsonrpc\" is missing."},"id":2}`)
	f(`{"jsonrpc":"2.0","method":"host.fetch","id":2}`, `{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found.","data":"Incorrect method \"host.fetch\"."},"id":2}`)
	f(`{"jsonrpc":"2.0","method":"host.get","id":2}`, `{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params.","data":"Not authorized."},"id":2}`)
	f(`{"jsonrpc":"2.0","method":"host.get","auth":"0424bd59b807674191e7d77572075f33","id":2}`, `{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params.","data":"Session terminated, re-login, please."},"id":2}`)
	f(`{"jsonrpc":"2.0","method":"host.get","params":"x","id":2}`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request.","data":"Invalid parameter \"/params\": an array is expected."},"id":2}`)
	f(`[]`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request.","data":"Invalid parameter \"/\": cannot be empty."},"id":null}`)
	f(`7`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request.","data":"Invalid parameter \"/\": an array is expected."},"id":null}`)
	if status, text := post(a, strings.Repeat(" ", maxBytes+1)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body of nobody: %d %s", status, text)
	}
	if _, text := post(a, "["+strings.Repeat("1,", maxCalls)+"1]"); !strings.Contains(text, "at most 1000 calls") {
		t.Errorf("a large batch: %.200s", text)
	}
	r := httptest.NewRequest(http.MethodPost, "/api_jsonrpc.php", strings.NewReader("{}"))
	r.Header.Set("Content-Type", "text/plain")
	w := httptest.NewRecorder()
	if a.serve(w, r); w.Code != http.StatusPreconditionFailed {
		t.Errorf("a body of text/plain: %d, want 412", w.Code)
	}
}

// TestMethods_roles says of every method who may call it, so that a new one is thought of.
func TestMethods_roles(t *testing.T) {
	for name, m := range methods {
		read := strings.HasSuffix(name, ".get") || slices.Contains([]string{
			"apiinfo.version", "user.login", "user.logout", "user.checkAuthentication", "configuration.export", "configuration.importcompare", "script.getscriptsbyhosts", "script.getscriptsbyevents",
		}, name)
		own := strings.HasPrefix(name, "token.") // everybody's own ones, as on the page; those of others are checked in the method
		accounts := strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "usergroup.")
		switch {
		case m.role == model.NoRole && name != "apiinfo.version" && name != "user.login" && name != "user.checkAuthentication":
			t.Errorf("%s needs no sign-in", name)
		case read == m.changes:
			t.Errorf("%s: changes is %v", name, m.changes)
		case m.changes && m.role < model.Operator && !own, m.changes && accounts && m.role < model.Administrator:
			t.Errorf("%s changes and needs %s only", name, m.role)
		}
	}
}

// FuzzRequests decodes foreign bytes and reads parameters of all forms out of them; what is answered is valid JSON.
func FuzzRequests(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","method":"host.get","params":{"output":["hostid"],"filter":{"host":["a"]},"limit":"5","tags":[{"tag":"a","value":"b","operator":1}]},"id":1}`,
		`[{"jsonrpc":"2.0","method":"apiinfo.version","params":[],"id":"x"},7]`, `{"params":["1",2]}`, `[[]]`, `{"id":{}}`, `{"params":{"search":{"name":{"a":"b"}}}}`,
	} {
		f.Add([]byte(s))
	}
	a := nobody(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		if status, text := post(a, string(body)); status == http.StatusOK && text != "" && !json.Valid([]byte(text)) {
			t.Fatalf("%q is answered %q", body, text)
		}
		list, _, err := decodeRequests(body)
		if err != nil {
			return
		}
		for _, text := range list {
			r, err := decodeRequest(text)
			if err != nil {
				continue
			}
			p, err := newParams(r.Params)
			if err != nil {
				continue
			}
			c := &call{ctx: t.Context(), params: p, room: 1 << 20}
			c.ids("hostids")
			c.tags()
			c.listIDs()
			p.failed = nil
			c.timeRange()
			if out, err := answer(c, &rowKind, []row{{1, "a"}, {2, "b\xff"}}); err == nil && !json.Valid(out) {
				t.Fatalf("%q is answered %q", text, out)
			}
		}
	})
}

package server

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/api"
	"tidemark/client"
	"tidemark/storage/postgres"
)

// withoutMethod are the routes that the Go client has no method for, and why; a pattern that ends in * stands for all that begin so.
var withoutMethod = map[string]string{
	"GET /-/*":                            "load balancers and service managers ask it",
	"GET /metrics":                        "Prometheus asks it",
	"GET /debug/pprof/":                   "it is Go's own, for developers of the program",
	"GET /api/openapi.json":               "generators of clients read it",
	"POST /api/login":                     "it makes the cookie of a browser; programs have tokens",
	"POST /api/logout":                    "it ends the session of a browser",
	"POST /api/first":                     "it makes the cookie of a browser, with the one-time link",
	"GET /api/live":                       "a stream without an end, for the page; Open gives it",
	"POST /api/problems/{id}/acknowledge": "POST /api/problem-updates does the same and more",
	"GET /api/standby/epoch":              "servers ask each other",
	"GET /api/standby/configuration":      "servers ask each other",
	"POST /api/standby/fence":             "servers ask each other",
	"POST /api/standby/handover":          "servers ask each other",
	"POST /api/standby/log":               "servers ask each other",
	"POST /api/import/zabbix":             "tidemark import zabbix sends what it read from a database",
	"POST /api/shadow/compare":            "tidemark shadow report sends what it read from a database",
	"POST /api/v1/*":                      "agents and collectors of others send values there, and queries can be asked for with GET",
	"GET /api/v1/format_query":            "Prometheus' own clients",
	"GET /api/v1/query_exemplars":         "Prometheus' own clients",
	"GET /api/v1/rules":                   "Prometheus' own clients",
	"GET /api/v1/alerts":                  "Prometheus' own clients",
	"GET /api/v1/status/buildinfo":        "Prometheus' own clients",
	"POST /api_jsonrpc.php":               "Zabbix's own clients",
	"POST /zabbix/api_jsonrpc.php":        "Zabbix's own clients",
}

// generalMethods are those that call no route of their own.
var generalMethods = []string{"Open", "Send", "Call", "Get", "HostByName", "ItemByKey"}

// sample returns a value of a type in which nothing is empty, so that a field that gets lost is seen.
func sample(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case t == reflect.TypeFor[time.Time]():
		return reflect.ValueOf(time.UnixMilli(1_790_000_000_000).UTC())
	case t == reflect.TypeFor[json.RawMessage]():
		return reflect.ValueOf(json.RawMessage(`{"a":1}`))
	case t == reflect.TypeFor[[]byte]():
		return reflect.ValueOf([]byte("{}"))
	}
	switch t.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(3)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(3)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Interface:
		v.Set(reflect.ValueOf("x"))
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(sample(t.Elem()))
	case reflect.Slice:
		v.Set(reflect.Append(v, sample(t.Elem())))
	case reflect.Array:
		for i := range t.Len() {
			v.Index(i).Set(sample(t.Elem()))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(sample(t.Key()), sample(t.Elem()))
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				v.Field(i).Set(sample(t.Field(i).Type))
			}
		}
	}
	return v
}

// sampleJSON is a sample of the type of an example, as it is sent.
func sampleJSON(t *testing.T, example any) []byte {
	t.Helper()
	text, err := json.Marshal(sample(reflect.TypeOf(example)).Interface())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// tree decodes JSON for a comparison that does not mind the order of fields.
func tree(t *testing.T, text []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%.200s: %v", text, err)
	}
	return v
}

// clientCalls is a server that knows the routes, writes down what is asked for and answers with samples.
type clientCalls struct {
	routes map[string]api.Route
	// The last call.
	name, contentType string
	body              []byte
	query             []string
	answer            []byte
}

func (c *clientCalls) serve(t *testing.T, route api.Route) http.HandlerFunc {
	name := route.Method + " " + route.Pattern
	example := answerOf(name, route)
	answer := []byte("{}")
	if example != nil && !strings.HasPrefix(route.Pattern, "/api/v1/") { // those have their data in an envelope that says nothing of its type
		answer = sampleJSON(t, example)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		c.name, c.contentType, c.answer = name, r.Header.Get("Content-Type"), answer
		c.body, _ = io.ReadAll(r.Body)
		c.query = nil
		for parameter := range r.URL.Query() {
			c.query = append(c.query, parameter)
		}
		_, _ = w.Write(answer)
	}
}

// answerOf is the example of a route's answer, also where this kind of store has none.
func answerOf(name string, route api.Route) any {
	switch {
	case name == "GET /api/storage/housekeeping":
		return postgres.Housekeeping{}
	case name == "POST /api/lease/handover":
		return leaseAnswer{}
	case route.Doc == nil:
		return nil
	}
	return route.Doc.Answer
}

// check compares what the last call sent with what the route takes, and what came of the answer with what the server sent.
func (c *clientCalls) check(t *testing.T, method string, arguments, results []reflect.Value) {
	route := c.routes[c.name]
	for _, parameter := range c.query {
		if !slices.ContainsFunc(route.Doc.Params, func(p api.Param) bool { return p.Name == parameter }) {
			t.Errorf("client.%s: %s has no parameter %s", method, c.name, parameter)
		}
	}
	if route.Doc.Body != nil && c.contentType == "application/json" {
		into := reflect.New(reflect.TypeOf(route.Doc.Body))
		d := json.NewDecoder(bytes.NewReader(c.body))
		d.DisallowUnknownFields()
		if err := d.Decode(into.Interface()); err != nil {
			t.Errorf("client.%s: %s does not take %s: %v", method, c.name, c.body, err)
		}
		// A body that the caller gives whole must have every field that the route takes.
		if want := sampleJSON(t, route.Doc.Body); arguments[len(arguments)-1].Kind() == reflect.Struct && !reflect.DeepEqual(tree(t, c.body), tree(t, want)) {
			t.Errorf("client.%s sends\n%s\nand %s takes\n%s", method, c.body, c.name, want)
		}
	}
	example := answerOf(c.name, route)
	if example == nil || len(results) < 2 || reflect.TypeOf(example).Kind() == reflect.Map || strings.HasPrefix(route.Pattern, "/api/v1/") {
		return
	}
	if kind := results[0].Kind(); kind != reflect.Struct && results[0].Type() != reflect.TypeFor[json.RawMessage]() {
		return
	}
	got, err := json.Marshal(results[0].Interface())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(tree(t, got), tree(t, c.answer)) {
		t.Errorf("client.%s makes\n%s\nof the answer of %s\n%s", method, got, c.name, c.answer)
	}
}

// TestRoutes_client calls every method of the Go client: each must ask for a route that there is with parameters and a body that it takes, and hold all of
// its answer; each route must have a method, or a reason why not.
func TestRoutes_client(t *testing.T) {
	calls := &clientCalls{routes: make(map[string]api.Route)}
	mux := http.NewServeMux()
	for _, route := range openForTest(t).routes() {
		name := route.Method + " " + route.Pattern
		calls.routes[name] = route
		mux.Handle(name, calls.serve(t, route))
	}
	web := httptest.NewServer(mux)
	defer web.Close()
	c, err := client.New(client.Options{Address: web.URL})
	if err != nil {
		t.Fatal(err)
	}
	called := make(map[string]bool)
	for method := range reflect.TypeOf(c).Methods() {
		if slices.Contains(generalMethods, method.Name) || method.Type.Out(0).Kind() == reflect.Func { // the walks ask for pages
			continue
		}
		arguments := []reflect.Value{reflect.ValueOf(c), reflect.ValueOf(t.Context())}
		for i := 2; i < method.Type.NumIn(); i++ {
			arguments = append(arguments, sample(method.Type.In(i)))
		}
		call := method.Func.Call
		if method.Type.IsVariadic() {
			call = method.Func.CallSlice
		}
		calls.name = ""
		results := call(arguments)
		if failure := results[len(results)-1]; !failure.IsNil() || calls.name == "" {
			t.Errorf("client.%s: %v, called %q", method.Name, failure, calls.name)
			continue
		}
		if closer, ok := results[0].Interface().(io.Closer); ok {
			_ = closer.Close()
		}
		called[calls.name] = true
		calls.check(t, method.Name, arguments, results)
	}
	needless := make(map[string]bool)
	for pattern := range withoutMethod {
		needless[pattern] = true
	}
	for name := range calls.routes {
		pattern := exempt(name)
		delete(needless, pattern)
		if called[name] == (pattern != "") {
			t.Errorf("%s: a method of the client calls it: %v, in withoutMethod: %q; expected one of both: add a method to package client", name, called[name], withoutMethod[pattern])
		}
	}
	for pattern := range needless {
		t.Errorf("withoutMethod has %s, which is no route", pattern)
	}
}

// exempt returns the entry of withoutMethod that holds for a route, or "".
func exempt(name string) string {
	if withoutMethod[name] != "" {
		return name
	}
	for pattern := range withoutMethod {
		if begin, ok := strings.CutSuffix(pattern, "*"); ok && strings.HasPrefix(name, begin) {
			return pattern
		}
	}
	return ""
}

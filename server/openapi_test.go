package server

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tidemark/api"
)

// undocumented are the routes that the OpenAPI document leaves out, and why.
var undocumented = map[string]string{
	"GET /debug/pprof/": "it is Go's own, for developers of the program",
}

// withoutBody are the changes that need no more than to be asked for.
var withoutBody = []string{
	"POST /api/logout", "POST /api/lease/handover", "POST /api/standby/promote", "POST /api/shadow", "POST /api/shadow/cutover",
}

// freeAnswers are the routes whose answer no type of this program describes, and why.
var freeAnswers = map[string]string{
	"GET /api/alerting":             "a document whose form docs/user/alerts.md has",
	"GET /api/openapi.json":         "a document whose form OpenAPI 3.1 has",
	"GET /api/storage/housekeeping": "this kind of store only answers that it has none",
	"POST /api/lease/handover":      "this kind of store only answers that it has none",
	"POST /api/v1/write":            "Prometheus' remote write has no body in answers",
	"POST /api/v1/otlp/v1/metrics":  "OpenTelemetry's form",
	"POST /api_jsonrpc.php":         "Zabbix's form, which differs by method",
	"POST /zabbix/api_jsonrpc.php":  "Zabbix's form, which differs by method",
}

// isFree says that a schema takes any object.
func isFree(schema map[string]any) bool {
	_, named := schema["$ref"]
	_, listed := schema["properties"]
	return schema["type"] == "object" && !named && !listed
}

// contents are the bodies that may come, by their content type.
type contents struct {
	Content map[string]struct{ Schema map[string]any }
}

// lack says what is not described; "" is nothing.
func (c *contents) lack() string {
	if c == nil || len(c.Content) == 0 {
		return "no content"
	}
	for kind, one := range c.Content {
		if len(one.Schema) == 0 {
			return kind + " has no schema"
		}
	}
	return ""
}

// lackOfBodies says which bodies of an operation are not described: the request's, the answer's and those of errors.
func lackOfBodies(route api.Route, request *contents, answers map[string]*contents) (lacks []string) {
	add := func(what, lack string) {
		if lack != "" {
			lacks = append(lacks, what+": "+lack)
		}
	}
	name := route.Method + " " + route.Pattern
	takes := (route.Method == http.MethodPost || route.Method == http.MethodPut) && !slices.Contains(withoutBody, name)
	switch {
	case takes:
		add("the request", request.lack())
	case request != nil:
		lacks = append(lacks, "the request: has a body, expected none")
	}
	errors := []string{"default", "403", "503"}
	if route.Permission != api.Public {
		errors = append(errors, "401")
	}
	if len(route.Doc.Params) > 0 || takes {
		errors = append(errors, "400")
	}
	if strings.Contains(route.Pattern, "{") {
		errors = append(errors, "404")
	}
	for _, status := range append(errors, "200") {
		add("the answer "+status, answers[status].lack())
	}
	if good := answers["200"]; good != nil && isFree(good.Content["application/json"].Schema) != (freeAnswers[name] != "") {
		lacks = append(lacks, "the answer 200: is any object, or is none and listed in freeAnswers: "+freeAnswers[name])
	}
	return lacks
}

// TestRoutes_openAPI finds every route in the document, with what each of its parameters is, the schemas of its request, its answer and its errors, and
// every schema that the document names.
func TestRoutes_openAPI(t *testing.T) {
	r := run(t, t.TempDir())
	var document struct {
		Paths map[string]map[string]struct {
			Summary     string
			Permission  string `json:"x-permission"`
			Parameters  []struct{ Name, In, Description string }
			RequestBody *contents
			Responses   map[string]*contents
		}
		Components struct{ Schemas map[string]json.RawMessage }
	}
	whole := r.call("GET", "/api/openapi.json", "", 200)
	if err := json.Unmarshal([]byte(whole), &document); err != nil {
		t.Fatal(err)
	}
	parameter := regexp.MustCompile(`\{([a-z_]+)\}`)
	seen := 0
	for _, route := range r.server.routes() {
		name := route.Method + " " + route.Pattern
		op, ok := document.Paths[route.Pattern][strings.ToLower(route.Method)]
		if why := undocumented[name]; ok == (why != "") {
			t.Errorf("%s: in the document: %v, in undocumented: %q; expected one of both: give the route a Doc", name, ok, why)
			continue
		}
		if !ok {
			continue
		}
		seen++
		if op.Summary == "" || op.Permission != string(route.Permission) || op.Responses["200"] == nil {
			t.Errorf("%s: %+v, expected a summary, the permission %s and an answer", name, op, route.Permission)
		}
		for _, lack := range lackOfBodies(route, op.RequestBody, op.Responses) {
			t.Errorf("%s: %s: describe it in the route's Doc", name, lack)
		}
		for _, p := range op.Parameters {
			if p.Description == "" {
				t.Errorf("%s: parameter %s has no description", name, p.Name)
			}
		}
		for _, want := range parameter.FindAllStringSubmatch(route.Pattern, -1) {
			if !slices.ContainsFunc(op.Parameters, func(p struct{ Name, In, Description string }) bool { return p.Name == want[1] && p.In == "path" }) {
				t.Errorf("%s: the parameter %s of the path is not described", name, want[1])
			}
		}
	}
	for _, ref := range regexp.MustCompile(`"#/components/schemas/([^"]+)"`).FindAllStringSubmatch(whole, -1) {
		if document.Components.Schemas[ref[1]] == nil {
			t.Errorf("the schema %s is named and not there", ref[1])
		}
	}
	if seen < 100 {
		t.Errorf("%d routes are described, expected more than 100", seen)
	}
}

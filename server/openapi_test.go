package server

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// undocumented are the routes that the OpenAPI document leaves out, and why.
var undocumented = map[string]string{
	"GET /debug/pprof/": "it is Go's own, for developers of the program",
}

// TestRoutes_openAPI finds every route in the document, with what each of its parameters is, and every schema that the document names.
func TestRoutes_openAPI(t *testing.T) {
	r := run(t, t.TempDir())
	var document struct {
		Paths map[string]map[string]struct {
			Summary     string
			Permission  string `json:"x-permission"`
			Parameters  []struct{ Name, In, Description string }
			RequestBody *json.RawMessage
			Responses   map[string]json.RawMessage
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

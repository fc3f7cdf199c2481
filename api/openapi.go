package api

import (
	"encoding/json"
	"net/http"
	"path"
	"reflect"
	"regexp"
	"strings"
	"sync"
)

// Doc describes a route for the OpenAPI document.
type Doc struct {
	// Summary is one line.
	Summary string
	// Params are the parameters in path and query.
	Params []Param
	// Body is an example value of the JSON request body's type; nil for none. BodyTypes names other content types.
	Body      any
	BodyTypes []string
	// Form are the fields of a body of the type application/x-www-form-urlencoded; nil for none.
	Form []Param
	// Answer is an example value of the JSON answer's type; nil for an answer of another type.
	Answer any
	// AnswerType is the content type; empty means application/json.
	AnswerType string
	// Failure is an example value of the JSON of answers that are no success, when the handler has its own; nil for ErrorAnswer. What refuses a
	// request before the handler sees it answers with ErrorAnswer in any case.
	Failure any
}

// Param is one parameter of a route.
type Param struct {
	Name string
	// Type is string, integer, number or boolean.
	Type string
	// About says what it does, with its limits and default.
	About    string
	Required bool
	// Repeated parameters may come several times.
	Repeated bool
}

var pathParam = regexp.MustCompile(`\{([a-zA-Z_]+)\}`)

// SpecRoute returns the route /api/openapi.json that describes routes, itself included.
func SpecRoute(version string, routes []Route) Route {
	spec := Route{
		Method: http.MethodGet, Pattern: "/api/openapi.json", Permission: View, PerHost: true,
		Doc: &Doc{Summary: "This description, as OpenAPI 3.1.", Answer: map[string]any{}},
	}
	// Made when it is asked for first: it takes more time than all the rest of a start.
	document := sync.OnceValue(func() json.RawMessage { return Spec(version, append(append([]Route(nil), routes...), spec)) })
	spec.Handler = JSON(func(*http.Request) (any, error) { return document(), nil })
	return spec
}

// Spec describes routes as OpenAPI 3.1. Schemas are drawn from the Go types of the answers, so they cannot differ from
// what is sent.
func Spec(version string, routes []Route) json.RawMessage {
	s := &schemas{named: make(map[string]any), names: make(map[reflect.Type]string)}
	s.of(reflect.TypeFor[ErrorAnswer]())
	paths := make(map[string]map[string]any)
	for _, r := range routes {
		if r.Doc == nil {
			continue
		}
		if paths[r.Pattern] == nil {
			paths[r.Pattern] = make(map[string]any)
		}
		paths[r.Pattern][strings.ToLower(r.Method)] = operation(r, s)
	}
	document, err := json.Marshal(map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "Tidemark", "version": version,
			"description": "Times are Unix milliseconds, except in fields that end in _ns (decimal nanoseconds, as text). Ids are decimal text.",
		},
		"paths":      paths,
		"components": map[string]any{"schemas": s.named},
	})
	if err != nil {
		panic("api: the OpenAPI document cannot be encoded: " + err.Error())
	}
	return document
}

// ErrorAnswer is the body of every answer that is no success.
type ErrorAnswer struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		// RequestID is the word under which the server's log has the whole cause of an internal error.
		RequestID string `json:"request_id,omitempty"`
	} `json:"error"`
}

func operation(r Route, s *schemas) map[string]any {
	answer := map[string]any{"description": "The answer."}
	answerType := r.Doc.AnswerType
	if answerType == "" {
		answerType = "application/json"
	}
	content := map[string]any{}
	if r.Doc.Answer != nil {
		content["schema"] = s.of(reflect.TypeOf(r.Doc.Answer))
	} else {
		content["schema"] = plain(answerType)
	}
	answer["content"] = map[string]any{answerType: content}
	responses := refusals(r, s)
	responses["200"] = answer
	op := map[string]any{
		"summary":      r.Doc.Summary,
		"x-permission": r.Permission,
		"responses":    responses,
	}
	if params := parameters(r); len(params) > 0 {
		op["parameters"] = params
	}
	if body := requestBody(r.Doc, s); body != nil {
		op["requestBody"] = body
	}
	return op
}

// plain is the schema of content that no Go type describes.
func plain(contentType string) map[string]any {
	switch {
	case strings.HasPrefix(contentType, "text/"), contentType == "application/yaml":
		return map[string]any{"type": "string"}
	case contentType == "application/json", contentType == "application/json-rpc":
		return map[string]any{"type": "object"}
	}
	return map[string]any{"type": "string", "format": "binary"}
}

// refusals are the answers of a route that are no success, by status. Default is for what only some routes answer, such as 409 and 422.
func refusals(r Route, s *schemas) map[string]any {
	ref := map[string]any{"$ref": "#/components/schemas/ErrorAnswer"}
	own := ref
	if r.Doc.Failure != nil {
		own = map[string]any{"anyOf": []any{s.of(reflect.TypeOf(r.Doc.Failure)), ref}}
	}
	answer := func(why string, schema map[string]any) map[string]any {
		return map[string]any{"description": why, "content": map[string]any{"application/json": map[string]any{"schema": schema}}}
	}
	out := map[string]any{
		"default": answer("Why not.", own),
		"403":     answer("The request comes from a page of another server, or the caller may not do this.", ref),
		"503":     answer("Busy, a standby, or without its database: try again later.", own),
	}
	if r.Permission != Public {
		out["401"] = answer("A token or a session is needed, or that of the request is wrong or over.", ref)
	}
	if len(parameters(r)) > 0 || requestBody(r.Doc, s) != nil {
		out["400"] = answer("A parameter or the body is not as described; the message says which and what is expected.", own)
	}
	if pathParam.MatchString(r.Pattern) {
		out["404"] = answer("There is no such object, or none that the caller may see.", own)
	}
	return out
}

func parameters(r Route) []any {
	var params []any
	inPath := make(map[string]bool)
	for _, m := range pathParam.FindAllStringSubmatch(r.Pattern, -1) {
		inPath[m[1]] = true
	}
	for _, p := range r.Doc.Params {
		schema := map[string]any{"type": p.Type}
		if p.Repeated {
			schema = map[string]any{"type": "array", "items": schema}
		}
		param := map[string]any{"name": p.Name, "in": "query", "description": p.About, "schema": schema, "required": p.Required}
		if inPath[p.Name] {
			param["in"], param["required"] = "path", true
		}
		params = append(params, param)
	}
	return params
}

func requestBody(doc *Doc, s *schemas) map[string]any {
	content := map[string]any{}
	if doc.Body != nil {
		content["application/json"] = map[string]any{"schema": s.of(reflect.TypeOf(doc.Body))}
	}
	for _, t := range doc.BodyTypes {
		content[t] = map[string]any{"schema": plain(t)}
	}
	if len(doc.Form) > 0 {
		content["application/x-www-form-urlencoded"] = map[string]any{"schema": form(doc.Form)}
	}
	if len(content) == 0 {
		return nil
	}
	return map[string]any{"required": true, "content": content}
}

// form is the schema of a form.
func form(fields []Param) map[string]any {
	properties := make(map[string]any)
	var required []string
	for _, f := range fields {
		field := map[string]any{"type": f.Type}
		if f.Repeated {
			field = map[string]any{"type": "array", "items": field}
		}
		field["description"] = f.About
		properties[f.Name] = field
		if f.Required {
			required = append(required, f.Name)
		}
	}
	object := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		object["required"] = required
	}
	return object
}

// schemas collects the schemas of named types.
type schemas struct {
	named map[string]any
	// names are those of types: two packages may have types of the same name.
	names map[reflect.Type]string
}

// name returns the name of a type's schema.
func (s *schemas) name(t reflect.Type) string {
	if t.Name() == "" || s.names[t] != "" {
		return s.names[t]
	}
	name := notInNames.ReplaceAllString(t.Name(), "_")
	if s.named[name] != nil {
		name = path.Base(t.PkgPath()) + "." + name
	}
	s.names[t] = name
	return name
}

// notInNames is what names of schemas must not have; those of generic types do.
var notInNames = regexp.MustCompile(`[^a-zA-Z0-9._-]+`)

// of returns the schema of a Go type as encoding/json writes it.
func (s *schemas) of(t reflect.Type) map[string]any {
	if t == reflect.TypeFor[json.RawMessage]() {
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return map[string]any{"anyOf": []any{s.of(t.Elem()), map[string]any{"type": "null"}}}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.object(t)
	}
	return map[string]any{}
}

func (s *schemas) object(t reflect.Type) map[string]any {
	name := s.name(t)
	ref := map[string]any{"$ref": "#/components/schemas/" + name}
	if name != "" {
		if s.named[name] != nil {
			return ref
		}
		s.named[name] = map[string]any{} // ends recursion
	}
	properties := make(map[string]any)
	var required []string
	s.fields(t, properties, &required)
	object := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		object["required"] = required
	}
	if name == "" {
		return object
	}
	s.named[name] = object
	return ref
}

func (s *schemas) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			s.fields(f.Type, properties, required)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		properties[name] = s.of(f.Type)
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
}

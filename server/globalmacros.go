package server

import (
	"net/http"

	"tidemark/access"
	"tidemark/api"
	"tidemark/model"
)

// maxMacroBody bounds a request with a global macro.
const maxMacroBody = 64 << 10

// globalMacroRoutes are those of the macros that hold for all hosts; the list is in GET /api/configuration.
func (s *Server) globalMacroRoutes() []api.Route {
	name := api.Param{Name: "macro", Type: "string", About: `Its name, {$NAME} or {$NAME:context}.`, Required: true}
	const pattern = "/api/global-macros/{macro}"
	return []api.Route{
		{
			Method: http.MethodPut, Pattern: pattern, Permission: api.Edit, Handler: api.JSON(s.putGlobalMacro), MaxBodyBytes: maxMacroBody,
			Doc: &api.Doc{
				Summary: "Makes a macro that holds for all hosts, or gives it another value. Without a value a secret one keeps its own; the answer has no secret value.",
				Body:    globalMacroBody{}, Answer: globalMacro{}, Params: []api.Param{name},
			},
		},
		{
			Method: http.MethodDelete, Pattern: pattern, Permission: api.Edit, Handler: api.JSON(s.deleteGlobalMacro),
			Doc: &api.Doc{Summary: "Deletes a macro that holds for all hosts.", Answer: struct{}{}, Params: []api.Param{name}},
		},
	}
}

func (s *Server) putGlobalMacro(r *http.Request) (any, error) {
	var body globalMacroBody
	if err := readStrictly(r.Body, &body); err != nil {
		return nil, err
	}
	m := model.Macro{Name: r.PathValue("macro"), Secret: body.Secret}
	if body.Value != nil {
		m.Value = *body.Value
	}
	before, err := s.db.PutGlobalMacro(r.Context(), m, body.Value == nil)
	if err != nil {
		return nil, configurationError(err)
	}
	access.Changed(r.Context(), "global macro "+m.Name, auditedMacro(before), auditedMacro(&m))
	return shownMacro(&m), s.refreshed(r.Context())
}

func (s *Server) deleteGlobalMacro(r *http.Request) (any, error) {
	before, err := s.db.DeleteGlobalMacro(r.Context(), r.PathValue("macro"))
	if err != nil {
		return nil, configurationError(err)
	}
	access.Changed(r.Context(), "global macro "+before.Name, auditedMacro(before), nil)
	return map[string]any{}, s.refreshed(r.Context())
}

// shownMacro is a macro without the value of a secret.
func shownMacro(m *model.Macro) globalMacro {
	shown := globalMacro{Macro: m.Name, Value: m.Value, Secret: m.Secret}
	if m.Secret {
		shown.Value = ""
	}
	return shown
}

// auditedMacro is a macro for the audit log, nil for none.
func auditedMacro(m *model.Macro) any {
	if m == nil {
		return nil
	}
	return shownMacro(m)
}

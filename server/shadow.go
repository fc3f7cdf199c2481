package server

import (
	"net/http"

	"tidemark/access"
	"tidemark/alert"
	"tidemark/api"
)

// shadowPlan is what the end of shadow mode does or did.
type shadowPlan struct {
	alert.Cutover
	// OpenProblems began before and are told to nobody.
	OpenProblems int `json:"open_problems"`
}

func (s *Server) shadowRoutes() []api.Route {
	return []api.Route{
		{
			Method: http.MethodGet, Pattern: "/api/shadow", Permission: api.View, PerHost: true, Handler: api.JSON(func(*http.Request) (any, error) { return shadowState{Since: s.alerter.InShadow() * 1000}, nil }),
			Doc: &api.Doc{Summary: "Whether another server alerts and this one only watches.", Answer: shadowState{}},
		},
		{
			Method: http.MethodPost, Pattern: "/api/shadow", Permission: api.Edit, Handler: api.JSON(s.beginShadow),
			Doc: &api.Doc{Summary: "Puts all actions out of force until the cutover.", Answer: shadowState{}},
		},
		{
			Method: http.MethodGet, Pattern: "/api/shadow/cutover", Permission: api.Edit, Handler: api.JSON(func(*http.Request) (any, error) {
				return shadowPlan{s.alerter.PlanCutover(), len(s.events.Problems())}, nil
			}),
			Doc: &api.Doc{Summary: "What the cutover would switch on.", Answer: shadowPlan{}},
		},
		{
			Method: http.MethodPost, Pattern: "/api/shadow/cutover", Permission: api.Edit, Handler: api.JSON(s.cutover),
			Doc: &api.Doc{Summary: "Ends shadow mode: switches actions and media types on that wait for it.", Answer: shadowPlan{}},
		},
	}
}

func (s *Server) beginShadow(r *http.Request) (any, error) {
	if err := s.alerter.BeginShadow(r.Context()); err != nil {
		return nil, apiError(err)
	}
	state := shadowState{Since: s.alerter.InShadow() * 1000}
	access.Changed(r.Context(), "shadow mode", nil, state)
	return state, nil
}

func (s *Server) cutover(r *http.Request) (any, error) {
	done, err := s.alerter.Cutover(r.Context())
	if err != nil {
		return nil, apiError(err)
	}
	plan := shadowPlan{done, len(s.events.Problems())}
	access.Changed(r.Context(), "shadow mode", shadowState{Since: done.Since * 1000}, plan)
	s.logger.Info("shadow mode ended", "actions", len(done.Actions), "media", len(done.Media))
	return plan, nil
}

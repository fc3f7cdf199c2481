package server

import (
	"encoding/json"
	"net/http"

	"tidemark/access"
	"tidemark/api"
)

func (s *Server) alertPauseRoutes() []api.Route {
	const pattern = "/api/alerting/paused"
	return []api.Route{
		{
			Method: http.MethodGet, Pattern: pattern, Permission: api.View, Handler: api.JSON(func(*http.Request) (any, error) { return s.alertPause(), nil }),
			Doc: &api.Doc{Summary: "Whether sending of alerts is paused.", Answer: alertPause{}},
		},
		{
			Method: http.MethodPut, Pattern: pattern, Permission: api.Edit, Handler: api.JSON(s.putAlertPause),
			Doc: &api.Doc{Summary: "Pauses the sending of alerts, or goes on with it, until the next start.", Body: pauseRequest{}, Answer: alertPause{}},
		},
	}
}

func (s *Server) alertPause() alertPause {
	p := alertPause{Paused: s.alerter.Paused()}
	if err := s.refusal(); err != nil {
		p.Reason = err.Error()
	}
	return p
}

// pauseRequest says whether sending shall pause; it must.
type pauseRequest struct {
	Paused *bool `json:"paused"`
}

func (s *Server) putAlertPause(r *http.Request) (any, error) {
	var in pauseRequest
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, api.BodyError(err)
	}
	if in.Paused == nil {
		return nil, api.BadRequest(`expected {"paused":true} or {"paused":false}`)
	}
	before := s.alertPause()
	s.alerter.Pause(*in.Paused)
	access.Changed(r.Context(), "alerting", before, s.alertPause())
	return s.alertPause(), nil
}

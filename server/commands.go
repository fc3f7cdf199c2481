package server

import (
	"net/http"
	"strconv"

	"tidemark/access"
	"tidemark/api"
	"tidemark/collectors"
	"tidemark/wire/zbx"
)

// maxCommandBody bounds a request to run a command.
const maxCommandBody = 2*collectors.MaxCommandBytes + 4096

// commandsAtOnce bounds the commands that are waited for.
const commandsAtOnce = 64

func (s *Server) commandRoutes() []api.Route {
	return []api.Route{{
		Method: http.MethodPost, Pattern: "/api/commands", Permission: api.Administer, Handler: api.JSON(s.runCommand), MaxBodyBytes: maxCommandBody,
		Doc: &api.Doc{
			Summary: "Runs a command on the agent of a host, which must allow system.run, or on the proxy that asks the host, and answers with what it printed, within a minute.",
			Body:    commandRequest{}, Answer: commandAnswer{},
		},
	}}
}

func (s *Server) runCommand(r *http.Request) (any, error) {
	in := commandRequest{On: "agent"}
	if err := decodeStrict(r, &in); err != nil {
		return nil, err
	}
	if err := collectors.CheckCommand(in.Command); err != nil {
		return nil, api.BadRequest(err.Error())
	}
	h, ok := s.cache.Snapshot().Host(in.Host)
	switch {
	case !ok:
		return nil, api.NotFound("no host has the name " + strconv.Quote(in.Host))
	case in.On != "agent" && in.On != "proxy":
		return nil, api.BadRequest("on is " + strconv.Quote(in.On) + ", expected agent or proxy")
	case in.On == "proxy" && h.Proxy == 0:
		return nil, api.BadRequest("host " + in.Host + " is asked by the server, which runs no commands itself; expected on: agent")
	}
	select {
	case s.commands <- struct{}{}:
		defer func() { <-s.commands }()
	default:
		return nil, &api.Error{Status: http.StatusTooManyRequests, Code: "limit", Message: "other commands are waited for, " + strconv.Itoa(commandsAtOnce) + " of them; try again later"}
	}
	// The log has it whatever becomes of it.
	access.Changed(r.Context(), "command for host "+in.Host, nil, struct {
		On      string `json:"on"`
		Command string `json:"command"`
	}{in.On, in.Command})
	var answer commandAnswer
	var err error
	switch {
	case h.Proxy == 0:
		answer.Output, err = collectors.RunOnAgent(r.Context(), s.agentChecker, h, in.Command)
	default:
		answer.Proxy = s.proxies.name(h.Proxy)
		on := zbx.OnAgent
		if in.On == "proxy" {
			on = zbx.OnProxy
		}
		answer.Output, err = s.proxies.command(r.Context(), h, on, in.Command)
	}
	if err != nil {
		answer.Error = err.Error()
	}
	return answer, nil
}

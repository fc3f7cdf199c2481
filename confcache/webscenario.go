package confcache

import (
	"fmt"
	"slices"
	"time"

	"tidemark/expr"
	"tidemark/model"
)

const (
	// maxStepTimeout is the longest time that a step of a web scenario may take, as Zabbix has it.
	maxStepTimeout = time.Hour
	// maxScenarioTime bounds a whole scenario.
	maxScenarioTime = time.Hour
)

// scenario expands a web scenario, and says how long all of it may take.
func (e *expander) scenario(from *model.WebScenario) (*model.WebScenario, time.Duration) {
	w := *from
	for _, field := range []*string{&w.Name, &w.Agent, &w.Proxy, &w.Username, &w.Password, &w.CertFile, &w.KeyFile, &w.KeyPassword} {
		*field = e.text(*field)
	}
	w.Variables, w.Headers = e.pairs(w.Variables), e.pairs(w.Headers)
	w.Steps = slices.Clone(w.Steps)
	var all time.Duration
	for i := range w.Steps {
		s := &w.Steps[i]
		for _, field := range []*string{&s.Name, &s.URL, &s.Posts, &s.TimeoutText, &s.Required, &s.StatusCodes} {
			*field = e.text(*field)
		}
		s.Query, s.Form, s.Variables, s.Headers = e.pairs(s.Query), e.pairs(s.Form), e.pairs(s.Variables), e.pairs(s.Headers)
		var ok bool
		if s.Timeout, ok = expr.ParseDuration(s.TimeoutText, false); !ok || s.Timeout < time.Second || s.Timeout > maxStepTimeout {
			e.errs = append(e.errs, fmt.Errorf("step %s has the timeout %q; expected 1s to 1h", s.Name, s.TimeoutText))
			s.Timeout = time.Second
		}
		all += s.Timeout * time.Duration(w.Attempts)
	}
	return &w, min(all, maxScenarioTime)
}

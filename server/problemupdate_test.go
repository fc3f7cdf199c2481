package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/api/rest"
	"tidemark/model"
)

func (p *permissions) session(name string) string {
	p.t.Helper()
	for _, c := range p.callers {
		if c.name == name {
			return c.session
		}
	}
	p.t.Fatal(name)
	return ""
}

// problemOf waits until a host has so many open problems, and returns the first.
func (p *permissions) problemOf(host, session string, count int) rest.Problem {
	p.t.Helper()
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var list rest.ProblemList
		if err := json.Unmarshal([]byte(p.must("GET", "/api/problems?open=true", "", session)), &list); err != nil {
			p.t.Fatal(err)
		}
		var of []rest.Problem
		for _, one := range list.Problems {
			if one.Host == host {
				of = append(of, one)
			}
		}
		switch {
		case len(of) == count && count == 0:
			return rest.Problem{}
		case len(of) == count:
			return of[0]
		case time.Now().After(until):
			p.t.Fatalf("%d open problems of %s, want %d", len(of), host, count)
		}
	}
}

// TestProblemUpdates suppresses, comments, closes and changes the severity of a problem over REST, and looks at the history and the audit log.
func TestProblemUpdates(t *testing.T) {
	p := newPermissions(t)
	operator, viewer := p.session("limited-operator"), p.session("viewer")
	problem := p.problemOf("own-host", operator, 1)
	if !problem.Closable || problem.Suppression != nil || problem.Severity != "high" {
		t.Fatalf("problem: %+v", problem)
	}
	update := func(rest string) string { return fmt.Sprintf(`{"event_ids":[%q],%s}`, problem.EventID, rest) }
	if status, _ := p.call("POST", "/api/problem-updates", update(`"close":true`), viewer, ""); status != http.StatusForbidden {
		t.Errorf("closed as viewer: %d", status)
	}
	for body, want := range map[string]string{
		update(`"message":""`):                       "nothing is to be done",
		update(`"severity":"dire"`):                  "expected not classified",
		update(`"suppress":true,"suppress_until":5`): "not in the future",
		update(`"suppress_until":5`):                 "expected suppress true",
		`{"event_ids":[],"close":true}`:              "expected 1 to 1000",
		`{"event_ids":["x"],"close":true}`:           "decimal id",
	} {
		if status, text := p.call("POST", "/api/problem-updates", body, operator, ""); status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %q", body, status, text, want)
		}
	}
	// One of them belongs to a host that the operator must not see: nothing is done.
	both := p.ids.Replace(fmt.Sprintf(`{"event_ids":[%q,"PROBLEM"],"close":true}`, problem.EventID))
	if status, text := p.call("POST", "/api/problem-updates", both, operator, ""); status != http.StatusNotFound {
		t.Errorf("a foreign problem among them: %d %s", status, text)
	}
	until := time.Now().Add(time.Hour).UnixMilli()
	p.must("POST", "/api/problem-updates", update(fmt.Sprintf(`"message":"known","severity":"disaster","suppress":true,"suppress_until":%d`, until)), operator)
	problem = p.problemOf("own-host", operator, 1)
	if problem.Suppression == nil || problem.Suppression.Until == nil || *problem.Suppression.Until != until || problem.Severity != "disaster" || problem.Acknowledged {
		t.Errorf("after the update: %+v", problem)
	}
	p.must("POST", "/api/problem-updates", update(`"suppress":false,"acknowledge":true`), operator)
	if problem = p.problemOf("own-host", operator, 1); problem.Suppression != nil || !problem.Acknowledged {
		t.Errorf("after the suppression was ended: %+v", problem)
	}
	p.must("POST", "/api/problem-updates", update(`"close":true`), operator)
	p.problemOf("own-host", operator, 0)
	if status, text := p.call("POST", "/api/problem-updates", update(`"close":true`), operator, ""); status != http.StatusUnprocessableEntity || !strings.Contains(text, "it is over") || strings.Contains(text, "config.db") {
		t.Errorf("closed again: %d %s", status, text)
	}
	var detail rest.ProblemDetail
	if err := json.Unmarshal([]byte(p.must("GET", "/api/problems/"+problem.EventID, "", operator)), &detail); err != nil {
		t.Fatal(err)
	}
	var done []string
	for _, m := range detail.Marks {
		done = append(done, m.Author+" "+m.Done)
	}
	want := "limited-operator commented, changed severity from high to disaster and suppressed until |limited-operator acknowledged and unsuppressed|limited-operator closed"
	if got := strings.Join(done, "|"); !strings.HasPrefix(got, want[:80]) || !strings.HasSuffix(got, want[strings.Index(want, "|"):]) {
		t.Errorf("history: %s", got)
	}
	if text := p.must("GET", "/api/audit?actor=limited-operator&search=problem", "", p.session("administrator")); !strings.Contains(text, problem.EventID) || !strings.Contains(text, "close") {
		t.Errorf("audit: %s", text)
	}
	// The expression still holds: the next value opens a new problem.
	p.send(fmt.Sprintf(`{"request":"sender data","data":[{"host":"own-host","key":"temperature","value":"43","clock":%d}]}`, time.Now().Unix()+1))
	if again := p.problemOf("own-host", operator, 1); again.EventID == problem.EventID || again.Severity != "high" {
		t.Errorf("after the next value: %+v", again)
	}
}

// slowReturn is a store whose first update is followed by something else before whoever asked for it goes on.
type slowReturn struct {
	problemStore
	after func()
}

func (s *slowReturn) UpdateProblems(ctx context.Context, ids []model.EventID, u model.ProblemUpdate) ([]model.StoredUpdate, error) {
	stored, err := s.problemStore.UpdateProblems(ctx, ids, u)
	if after := s.after; after != nil {
		s.after = nil
		after()
	}
	return stored, err
}

// TestProblemUpdates_atOnce lets two people change one problem at one instant, the first of whom is slow behind the database: what is shown is what is
// stored.
func TestProblemUpdates_atOnce(t *testing.T) {
	p := newPermissions(t)
	problem := p.problemOf("own-host", p.session("operator"), 1)
	number, err := strconv.ParseUint(problem.EventID, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	id, a := model.EventID(number), p.server.alerting()
	update := func(severity model.Severity) {
		u := model.ProblemUpdate{Actions: model.ActionSeverity, Severity: severity, Author: "x"}
		if _, err := a.UpdateProblems(t.Context(), []model.EventID{id}, u); err != nil {
			t.Error(err)
		}
	}
	var second sync.WaitGroup
	var done atomic.Bool
	a.db = &slowReturn{p.server.db, func() {
		second.Go(func() {
			update(model.Warning)
			done.Store(true)
		})
		for range 200_000 { // the second one comes through meanwhile, if it can
			if done.Load() {
				return
			}
			runtime.Gosched()
		}
	}}
	update(model.Disaster)
	second.Wait()
	shown, ok := p.server.events.Problem(id)
	stored, err := p.server.db.OpenProblems(t.Context())
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	for i := range stored {
		if stored[i].ID == id && stored[i].Severity != shown.Severity {
			t.Errorf("%v is shown, %v is stored", shown.Severity, stored[i].Severity)
		}
	}
}

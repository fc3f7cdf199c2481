package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tidemark/api/rest"
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
	if status, text := p.call("POST", "/api/problem-updates", update(`"close":true`), operator, ""); status != http.StatusUnprocessableEntity || !strings.Contains(text, "it is over") {
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

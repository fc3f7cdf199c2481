package proxyconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tidemark/model"
)

// The numbers of Zabbix's tables of web scenarios: what a field is, and what of a scenario or step an item has.
const (
	headerField = iota
	variableField
	formField
	queryField
)

const (
	webStatus = iota
	webTime
	webSpeed
	webFail
	webError
)

const (
	webTestFields = "httptestid name delay agent authentication http_user http_password hostid http_proxy retries ssl_cert_file ssl_key_file ssl_key_password " +
		"verify_peer verify_host"
	webStepFields = "httpstepid httptestid name no url timeout posts required status_codes follow_redirects retrieve_mode post_type"
	// webFanOut is how many headers, variables and fields a scenario or step can have; it makes their ids.
	webFanOut = 10_000
)

// The paths by which items take their values out of what a scenario brings, with the numbers of Zabbix's tables.
var (
	webTestPaths = map[string]int{"in": webSpeed, "fail": webFail, "error": webError}
	webStepPaths = map[string]int{"in": webSpeed, "time": webTime, "rspcode": webStatus}
)

// webEncoder fills the tables of web scenarios.
type webEncoder struct {
	tests, testItems, testFields, steps, stepItems, stepFields *table
	// known are the scenarios by the item that runs them.
	known map[model.ItemID]*model.Item
}

func newWebEncoder() *webEncoder {
	return &webEncoder{
		tests: newTable(webTestFields), testItems: newTable("httptestitemid httptestid itemid type"), testFields: newTable("httptest_fieldid httptestid type name value"),
		steps: newTable(webStepFields), stepItems: newTable("httpstepitemid httpstepid itemid type"), stepFields: newTable("httpstep_fieldid httpstepid type name value"),
		known: map[model.ItemID]*model.Item{},
	}
}

// tables are the tables in an order in which rows refer to earlier ones only.
func (w *webEncoder) tables() []named {
	return []named{
		{"httptest", w.tests},
		{"httptestitem", w.testItems},
		{"httptest_field", w.testFields},
		{"httpstep", w.steps},
		{"httpstepitem", w.stepItems},
		{"httpstep_field", w.stepFields},
	}
}

// scenario adds a web scenario. The item that runs it is no item of Zabbix; the scenario has its id.
func (w *webEncoder) scenario(i *model.Item) error {
	s, id := i.Collect.Web, uint64(i.ID)
	w.known[i.ID] = i
	w.tests.add(id, s.Name, i.Delay, s.Agent, index(httpAuth, s.AuthType, 0), s.Username, s.Password, i.HostID, s.Proxy, max(1, s.Attempts), s.CertFile, s.KeyFile,
		s.KeyPassword, number(s.VerifyPeer), number(s.VerifyHost))
	if err := addWebFields(w.testFields, id, s.Variables, s.Headers, nil, nil); err != nil {
		return fmt.Errorf("web scenario %s: %w", s.Name, err)
	}
	if len(s.Steps) >= fanOut {
		return fmt.Errorf("web scenario %s has %d steps; expected fewer than %d", s.Name, len(s.Steps), fanOut)
	}
	for n := range s.Steps {
		at, step := &s.Steps[n], webStepID(i.ID, n)
		w.steps.add(step, id, at.Name, n+1, at.URL, cmp.Or(at.TimeoutText, "15s"), at.Posts, at.Required, at.StatusCodes, number(at.FollowRedirects),
			index(retrieves, at.Retrieve, 0), number(len(at.Form) > 0))
		if err := addWebFields(w.stepFields, step, at.Variables, at.Headers, at.Form, at.Query); err != nil {
			return fmt.Errorf("step %s of web scenario %s: %w", at.Name, s.Name, err)
		}
	}
	return nil
}

func webStepID(test model.ItemID, n int) uint64 { return uint64(test)*fanOut + uint64(n) + 1 }

func addWebFields(t *table, owner uint64, variables, headers, form, query []model.Pair) error {
	if n := len(variables) + len(headers) + len(form) + len(query); n >= webFanOut {
		return fmt.Errorf("%d variables, headers and fields; expected fewer than %d", n, webFanOut)
	}
	id := owner * webFanOut
	for _, list := range []struct {
		kind  int
		pairs []model.Pair
	}{{headerField, headers}, {variableField, variables}, {formField, form}, {queryField, query}} {
		for _, p := range list.pairs {
			id++
			t.add(id, owner, list.kind, p.Name, p.Value)
		}
	}
	return nil
}

// takes adds what an item takes of a web scenario. It returns the scenario, and false for an item that is none of a scenario's own.
func (w *webEncoder) takes(i *model.Item) (test *model.Item, ok bool) {
	if test = w.known[i.MasterID]; test == nil || len(i.Steps) != 1 || i.Steps[0].Type != model.StepJSONPath || len(i.Steps[0].Params) != 1 {
		return test, false
	}
	path, whole := strings.CutPrefix(i.Steps[0].Params[0], "$.")
	if kind, ok := webTestPaths[path]; ok && whole {
		w.testItems.add(i.ID, test.ID, i.ID, kind)
		return test, true
	}
	step, field, _ := strings.Cut(strings.TrimPrefix(path, "steps["), "].")
	kind, ok := webStepPaths[field]
	n, err := strconv.Atoi(step)
	if !ok || err != nil || n < 0 || n >= len(test.Collect.Web.Steps) {
		return test, false
	}
	w.stepItems.add(i.ID, webStepID(test.ID, n), i.ID, kind)
	return test, true
}

// item adds an item of a web scenario: the scenario itself, or what takes a value out of it. It returns the item as Zabbix has it; nil for one that
// is none there.
func (w *webEncoder) item(i *model.Item) (*model.Item, error) {
	if i.Type == model.WebTest {
		if i.Collect == nil || i.Collect.Web == nil {
			return nil, nil
		}
		return nil, w.scenario(i)
	}
	test, ok := w.takes(i)
	if test == nil {
		return i, nil
	}
	if !ok {
		return nil, nil
	}
	as := *i
	as.Type, as.MasterID, as.Steps, as.Delay = model.WebTest, 0, slices.Clip(as.Steps[:0]), test.Delay
	return &as, nil
}

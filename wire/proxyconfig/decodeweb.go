package proxyconfig

import (
	"fmt"
	"slices"

	"tidemark/model"
)

// ownItem is the bit in the ids of items that a proxy makes by itself, one for each web scenario: Zabbix has none, and the server knows none.
const ownItem model.ItemID = 1 << 61

// IsOwn reports whether an item is made by the proxy, so that the server must not hear of its values.
func IsOwn(id model.ItemID) bool { return id&ownItem != 0 }

// tableReader reads the rows of one table.
type tableReader struct {
	table string
	row   func(*reader)
}

// webDecoder gathers web scenarios.
type webDecoder struct {
	decoder *decoder
	tests   map[uint64]*webTest
	order   []uint64
	steps   map[uint64]*webStep
	links   []webLink
}

type webTest struct {
	model.WebScenario
	item  *item
	steps []*webStep
}

type webStep struct {
	model.WebStep
	test *webTest
	// place is the number of the step, form whether it sends fields.
	place int
	form  bool
}

// webLink is an item that takes something of a scenario, or of a step.
type webLink struct {
	item *item
	test *webTest
	step *webStep
	kind int
}

func (d *decoder) webTables() []tableReader {
	w := &d.web
	*w = webDecoder{decoder: d, tests: map[uint64]*webTest{}, steps: map[uint64]*webStep{}}
	return []tableReader{
		{"httptest", w.scenario},
		{"httptest_field", w.field},
		{"httpstep", w.step},
		{"httpstep_field", w.stepField},
		{"httptestitem", w.takes},
		{"httpstepitem", w.takesOfStep},
	}
}

func (w *webDecoder) scenario(r *reader) {
	h, id := w.decoder.hosts[r.id("hostid")], r.id("httptestid")
	if h == nil || r.err != nil {
		return
	}
	own := ownItem | model.ItemID(id)
	if id >= uint64(ownItem) || w.tests[id] != nil {
		r.err = fmt.Errorf("web scenario %d is there twice, or its id is too large", id)
		return
	}
	t := &webTest{item: &item{host: h}}
	t.WebScenario = model.WebScenario{
		Name: r.text("name"), Agent: r.text("agent"), Proxy: r.text("http_proxy"), Attempts: min(max(1, r.number("retries")), maxWebAttempts),
		AuthType: nameOf(httpAuth, r.number("authentication")), Username: r.text("http_user"), Password: r.text("http_password"), CertFile: r.text("ssl_cert_file"),
		KeyFile: r.text("ssl_key_file"), KeyPassword: r.text("ssl_key_password"), VerifyPeer: r.yes("verify_peer"), VerifyHost: r.yes("verify_host"),
	}
	// Of type Binary, as rules are: not cut, and not shown.
	t.item.Item = model.Item{
		ID: own, HostID: h.Host.ID, Type: model.WebTest, Key: fmt.Sprintf("web.test[id %d]", id), ValueType: model.Binary, Delay: r.text("delay"), Enabled: true,
		Collect: &model.Collect{Web: &t.WebScenario},
	}
	w.tests[id] = t
	w.order = append(w.order, id)
}

// maxWebAttempts is how often a step may be tried.
const maxWebAttempts = 10

func (w *webDecoder) step(r *reader) {
	t, id := w.tests[r.id("httptestid")], r.id("httpstepid")
	if t == nil || r.err != nil {
		return
	}
	if w.steps[id] != nil {
		r.err = fmt.Errorf("step %d of a web scenario is there twice", id)
		return
	}
	s := &webStep{test: t, place: r.number("no"), form: r.yes("post_type")}
	s.WebStep = model.WebStep{
		Name: r.text("name"), URL: r.text("url"), FollowRedirects: r.yes("follow_redirects"), Retrieve: nameOf(retrieves, r.number("retrieve_mode")),
		TimeoutText: r.text("timeout"), Required: r.text("required"), StatusCodes: r.text("status_codes"),
	}
	if !s.form {
		s.Posts = r.text("posts")
	}
	w.steps[id] = s
	t.steps = append(t.steps, s)
}

func (w *webDecoder) field(r *reader) {
	t, p := w.tests[r.id("httptestid")], model.Pair{Name: r.text("name"), Value: r.text("value")}
	if t == nil {
		return
	}
	switch r.number("type") {
	case headerField:
		t.Headers = append(t.Headers, p)
	case variableField:
		t.Variables = append(t.Variables, p)
	}
}

func (w *webDecoder) stepField(r *reader) {
	s, p := w.steps[r.id("httpstepid")], model.Pair{Name: r.text("name"), Value: r.text("value")}
	if s == nil {
		return
	}
	switch r.number("type") {
	case headerField:
		s.Headers = append(s.Headers, p)
	case variableField:
		s.Variables = append(s.Variables, p)
	case formField:
		if s.form {
			s.Form = append(s.Form, p)
		}
	case queryField:
		s.Query = append(s.Query, p)
	}
}

func (w *webDecoder) takes(r *reader) {
	if t := w.tests[r.id("httptestid")]; t != nil {
		w.link(r, webLink{test: t})
	}
}

func (w *webDecoder) takesOfStep(r *reader) {
	if s := w.steps[r.id("httpstepid")]; s != nil {
		w.link(r, webLink{test: s.test, step: s})
	}
}

// link takes note of an item; one that is not sent, because it is switched off, is passed over.
func (w *webDecoder) link(r *reader, l webLink) {
	l.item, l.kind = w.decoder.items[r.id("itemid")], r.number("type")
	if l.item != nil && l.item.Type == model.WebTest && l.item.host == l.test.item.host {
		w.links = append(w.links, l)
	}
}

// finish makes the items: one that runs a scenario, and those that take their values out of what it brings.
func (w *webDecoder) finish() {
	for _, id := range w.order {
		t := w.tests[id]
		slices.SortStableFunc(t.steps, func(a, b *webStep) int { return a.place - b.place })
		for n, s := range t.steps {
			s.place = n
			t.Steps = append(t.Steps, s.WebStep)
		}
		t.item.host.items = append(t.item.host.items, t.item)
		w.decoder.items[uint64(t.item.ID)] = t.item
	}
	for _, l := range w.links {
		path, paths := "$.", webTestPaths
		if l.step != nil {
			path, paths = fmt.Sprintf("$.steps[%d].", l.step.place), webStepPaths
		}
		field := nameOf(paths, l.kind)
		if field == "" || l.item.master != 0 {
			continue
		}
		l.item.Type, l.item.Delay, l.item.master = model.Dependent, "", uint64(l.test.item.ID)
		l.item.Steps = []model.Step{{Type: model.StepJSONPath, Params: []string{path + field}, OnFail: model.FailDiscard}}
	}
}

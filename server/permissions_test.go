package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"tidemark/api"
	"tidemark/model"
	"tidemark/storage/dbengine"
)

// foreign is in the names of everything of the host that limited users must not see.
const foreign = "foreign-7f3a"

// foreignCall asks a per-host route for the foreign host. For a limited user the answer must not hold the word foreign and have the status
// limited; shows says that for others it does hold it, which proves that the request would find it. HOST, ITEM, RULE and PROBLEM stand for ids.
type foreignCall struct {
	path    string
	body    string
	limited int
	shows   bool
}

// foreignCalls has an entry for every per-host route.
var foreignCalls = map[string]foreignCall{
	"GET /api/hosts/{id}/webscenarios":    {path: "/api/hosts/HOST/webscenarios", limited: 404},
	"GET /api/configuration":              {path: "/api/configuration", limited: 200},
	"GET /api/configuration/hosts/{name}": {path: "/api/configuration/hosts/foreign-7f3a", limited: 404, shows: true},
	"PUT /api/configuration/hosts/{name}": {path: "/api/configuration/hosts/foreign-7f3a", body: "{}", limited: 404},
	// Those who may would delete it, so that TestPermissions_limitedEditor tries the foreign one.
	"DELETE /api/configuration/hosts/{name}":  {path: "/api/configuration/hosts/none", limited: 404},
	"POST /api/configuration/hosts":           {path: "/api/configuration/hosts", body: "{}", limited: 400},
	"POST /api/configuration/plan":            {path: "/api/configuration/plan?kind=host&name=foreign-7f3a", body: "{}", limited: 404},
	"POST /api/configuration/test-item":       {path: "/api/configuration/test-item", body: `{"host":"foreign-7f3a","key":"temperature","document":{}}`, limited: 404},
	"POST /api/configuration/preview-trigger": {path: "/api/configuration/preview-trigger", body: `{"host":"foreign-7f3a","trigger":"x","document":{}}`, limited: 404},
	"POST /api/check-now":                     {path: "/api/check-now", body: `{"host":"foreign-7f3a"}`, limited: 404},
	"GET /api/hosts/{id}/graphs":              {path: "/api/hosts/HOST/graphs", limited: 404},
	"GET /api/discovery":                      {path: "/api/discovery?host=HOST", limited: 200, shows: true},
	"GET /api/discovery/{id}":                 {path: "/api/discovery/RULE", limited: 404, shows: true},
	"GET /api/export":                         {path: "/api/export?host=foreign-7f3a", limited: 404, shows: true},
	"GET /api/hosts/{id}/interfaces":          {path: "/api/hosts/HOST/interfaces", limited: 404},
	"GET /api/queue":                          {path: "/api/queue", limited: 200},
	"GET /api/storage":                        {path: "/api/storage", limited: 200},
	"GET /api/storage/classes":                {path: "/api/storage/classes", limited: 200},
	"GET /api/storage/hosts":                  {path: "/api/storage/hosts", limited: 200, shows: true},
	"GET /api/storage/trial":                  {path: "/api/storage/trial", limited: 200},
	"GET /api/states":                         {path: "/api/states?items=ITEM", limited: 200},
	"GET /api/dashboards":                     {path: "/api/dashboards", limited: 200, shows: true},
	// What is foreign or somebody else's is tried by TestPermissions_dashboards.
	"POST /api/dashboards":                {path: "/api/dashboards", body: "{}", limited: 422},
	"PUT /api/dashboards/{id}":            {path: "/api/dashboards/1", body: "{}", limited: 422},
	"DELETE /api/dashboards/{id}":         {path: "/api/dashboards/999999", limited: 404},
	"GET /api/dashboard-file":             {path: "/api/dashboard-file", limited: 200, shows: true},
	"GET /api/dashboards/{id}":            {path: "/api/dashboards/1", limited: 404, shows: true},
	"GET /api/dashboards/{id}/versions":   {path: "/api/dashboards/1/versions", limited: 404, shows: true},
	"GET /api/alerts":                     {path: "/api/alerts?problem=PROBLEM", limited: 200},
	"GET /api/chart":                      {path: "/api/chart?items=ITEM", limited: 200, shows: true},
	"GET /api/hosts":                      {path: "/api/hosts", limited: 200, shows: true},
	"GET /api/hosts/{id}":                 {path: "/api/hosts/HOST", limited: 404, shows: true},
	"GET /api/items":                      {path: "/api/items?host=HOST", limited: 200, shows: true},
	"GET /api/items/{id}":                 {path: "/api/items/ITEM", limited: 404, shows: true},
	"GET /api/live":                       {path: "/api/live?items=ITEM&host=HOST&overview=1", limited: 200, shows: true},
	"GET /api/me":                         {path: "/api/me", limited: 200},
	"GET /api/me/tokens":                  {path: "/api/me/tokens", limited: 200},
	"GET /api/mongo/compare":              {path: "/api/mongo/compare?instance=none/1", limited: 404},
	"GET /api/mongo/instances":            {path: "/api/mongo/instances", limited: 200},
	"GET /api/mongo/requests":             {path: "/api/mongo/requests?instance=none/1", limited: 404},
	"GET /api/mongo/requests/{fp}":        {path: "/api/mongo/requests/all?instance=none/1", limited: 404},
	"GET /api/openapi.json":               {path: "/api/openapi.json", limited: 200},
	"GET /api/overview":                   {path: "/api/overview", limited: 200, shows: true},
	"GET /api/overview/hour":              {path: "/api/overview/hour", limited: 200},
	"GET /api/problems":                   {path: "/api/problems", limited: 200, shows: true},
	"GET /api/search":                     {path: "/api/search?q=7f3a", limited: 200, shows: true},
	"GET /api/shadow":                     {path: "/api/shadow", limited: 200},
	"GET /api/triggers":                   {path: "/api/triggers?host=HOST", limited: 200, shows: true},
	"GET /api/v1/alerts":                  {path: "/api/v1/alerts", limited: 200, shows: true},
	"GET /api/v1/format_query":            {path: "/api/v1/format_query?query=up", limited: 200},
	"GET /api/v1/label/{name}/values":     {path: "/api/v1/label/host/values", limited: 200, shows: true},
	"GET /api/v1/labels":                  {path: "/api/v1/labels", limited: 200},
	"GET /api/v1/metadata":                {path: "/api/v1/metadata", limited: 200},
	"GET /api/v1/query":                   {path: "/api/v1/query?query=temperature&time=UNTIL", limited: 200, shows: true},
	"GET /api/v1/query_exemplars":         {path: "/api/v1/query_exemplars?query=up", limited: 200},
	"GET /api/v1/query_range":             {path: "/api/v1/query_range?query=temperature&start=FROM&end=UNTIL&step=10", limited: 200, shows: true},
	"GET /api/v1/rules":                   {path: "/api/v1/rules", limited: 200, shows: true},
	"GET /api/v1/series":                  {path: "/api/v1/series?match[]=temperature", limited: 200, shows: true},
	"GET /api/v1/status/buildinfo":        {path: "/api/v1/status/buildinfo", limited: 200},
	"GET /api/values":                     {path: "/api/values?item=ITEM", limited: 404, shows: true},
	"POST /api/me/tokens":                 {path: "/api/me/tokens", limited: 400},
	"PUT /api/me/password":                {path: "/api/me/password", limited: 400},
	"DELETE /api/me/tokens/{id}":          {path: "/api/me/tokens/999999", limited: 404},
	"GET /api/problems/{id}":              {path: "/api/problems/PROBLEM", limited: 404, shows: true},
	"POST /api/problems/{id}/acknowledge": {path: "/api/problems/PROBLEM/acknowledge", body: "{}", limited: 404},
	"POST /api/problem-updates":           {path: "/api/problem-updates", body: `{"event_ids":["PROBLEM"],"message":"a word"}`, limited: 404},
	"POST /api/v1/format_query":           {path: "/api/v1/format_query?query=up", limited: 200},
	"POST /api/v1/labels":                 {path: "/api/v1/labels", limited: 200},
	"POST /api/v1/query":                  {path: "/api/v1/query?query=temperature&time=UNTIL", limited: 200, shows: true},
	"POST /api/v1/query_exemplars":        {path: "/api/v1/query_exemplars?query=up", limited: 200},
	"POST /api/v1/query_range":            {path: "/api/v1/query_range?query=temperature&start=FROM&end=UNTIL&step=10", limited: 200, shows: true},
	"POST /api/v1/series":                 {path: "/api/v1/series?match[]=temperature", limited: 200, shows: true},
}

const twoHosts = `{"zabbix_export":{"version":"6.0","groups":[{"uuid":"0123456789ab4def8123456789abcde1","name":"Own"},{"uuid":"0123456789ab4def8123456789abcde2","name":"Foreign"}],"hosts":[
{"host":"own-host","name":"Own","groups":[{"name":"Own"}],"items":[{"name":"Temperature","type":"TRAP","key":"temperature","delay":"0","value_type":"FLOAT","triggers":[
{"expression":"last(/own-host/temperature)>10","name":"Too warm on own","priority":"HIGH","manual_close":"YES"}]}]},
{"host":"foreign-7f3a","name":"The foreign-7f3a","groups":[{"name":"Foreign"}],"items":[{"name":"Temperature of foreign-7f3a","type":"TRAP","key":"temperature","delay":"0","value_type":"FLOAT","triggers":[
{"expression":"last(/foreign-7f3a/temperature)>10","name":"Too warm on foreign-7f3a","priority":"HIGH","manual_close":"YES"}]}],
"discovery_rules":[{"name":"Rule of foreign-7f3a","type":"TRAP","key":"rule","delay":"0"}]}]}}`

// caller is somebody who sends requests.
type caller struct {
	name    string
	role    model.Role
	limited bool
	session string
}

// permissions is a server with two hosts of two groups, and somebody of every kind.
type permissions struct {
	*running
	callers []caller
	ids     *strings.Replacer
}

const testPassword = "correct horse battery"

// newPermissions makes everything through the interface itself.
func newPermissions(t *testing.T) *permissions {
	p := &permissions{running: run(t, t.TempDir())}
	p.must("POST", "/api/import", twoHosts, "")
	for _, host := range []string{"own-host", foreign} {
		answer := p.send(fmt.Sprintf(`{"request":"sender data","data":[{"host":%q,"key":"temperature","value":"42.5","clock":%d}]}`, host, time.Now().Unix()))
		if !strings.Contains(answer, "processed: 1; failed: 0") {
			t.Fatalf("the sender is answered %s", answer)
		}
	}
	var open struct {
		Problems []struct {
			ID   string `json:"event_id"`
			Host string
		}
	}
	for until := time.Now().Add(time.Minute); len(open.Problems) < 2; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the problems do not come")
		}
		p.get("/api/problems?open=true", &open)
	}
	if err := p.server.engine.(*dbengine.DB).ClosePair(t.Context()); err != nil { // what hosts take is known of closed pairs
		t.Fatal(err)
	}
	problem := open.Problems[0].ID
	if open.Problems[1].Host == foreign {
		problem = open.Problems[1].ID
	}
	var hosts struct{ Hosts []struct{ ID, Host string } }
	p.get("/api/hosts?search="+foreign, &hosts)
	var items struct{ Items []struct{ ID string } }
	p.get("/api/items?host="+hosts.Hosts[0].ID, &items)
	var rules struct{ Rules []struct{ ID string } }
	p.get("/api/discovery?host="+hosts.Hosts[0].ID, &rules)
	now := time.Now().Unix()
	// The words are long enough not to be in a session by chance: TO was in one of a hundred.
	p.ids = strings.NewReplacer("HOST", hosts.Hosts[0].ID, "ITEM", items.Items[0].ID, "PROBLEM", problem, "RULE", rules.Rules[0].ID, "FROM", fmt.Sprint(now-60), "UNTIL", fmt.Sprint(now+60))

	p.must("POST", "/api/dashboards", `{"dashboard":{"name":"Of foreign-7f3a","widgets":[]}}`, "")
	p.must("PUT", "/api/user_groups/Owners", `{"grants":[{"host_group":"Own","role":"editor"}]}`, "")
	p.callers = []caller{{name: "nobody"}}
	for role := model.Viewer; role <= model.Editor; role++ {
		for _, limited := range []bool{false, true} {
			p.addCaller(role, limited)
		}
	}
	p.addCaller(model.Administrator, false) // from here on loopback is nobody
	p.loginAll()
	return p
}

func (p *permissions) loginAll() {
	for i := range p.callers {
		if p.callers[i].role > 0 {
			p.callers[i].session = p.login(p.callers[i].name)
		}
	}
}

func (p *permissions) addCaller(role model.Role, limited bool) {
	c := caller{name: role.String(), role: role, limited: limited}
	groups := ""
	if limited {
		c.name, groups = "limited-"+c.name, `"Owners"`
	}
	p.must("POST", "/api/users", fmt.Sprintf(`{"name":%q,"role":%q,"all_hosts":%v,"groups":[%s],"password":%q}`, c.name, role.String(), !limited, groups, testPassword), "")
	p.callers = append(p.callers, c)
}

// call sends a request with a session and returns status and body; of a stream what comes until the word that is looked for, or for a while.
func (p *permissions) call(method, path, body, session, until string) (int, string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, p.http+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if session != "" {
		r.AddCookie(&http.Cookie{Name: api.SessionCookie, Value: session})
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(method, path, err)
	}
	defer answer.Body.Close()
	if answer.Header.Get("Content-Type") != "text/event-stream" {
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			p.t.Fatal(method, path, err)
		}
		return answer.StatusCode, string(text)
	}
	if until == "" { // what must not come is waited for shortly: the overview comes at once
		time.AfterFunc(1500*time.Millisecond, cancel)
	}
	var text []byte
	part := make([]byte, 4096)
	for {
		n, err := answer.Body.Read(part)
		text = append(text, part[:n]...)
		if err != nil || until != "" && strings.Contains(string(text), until) {
			return answer.StatusCode, string(text)
		}
	}
}

func (p *permissions) must(method, path, body, session string) string {
	p.t.Helper()
	status, text := p.call(method, path, body, session, "")
	if status != http.StatusOK {
		p.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return text
}

// login signs in and returns what the cookie holds.
func (p *permissions) login(name string) string {
	p.t.Helper()
	answer, err := http.Post(p.http+"/api/login", "application/json", strings.NewReader(fmt.Sprintf(`{"name":%q,"password":%q}`, name, testPassword)))
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	for _, c := range answer.Cookies() {
		if c.Name == api.SessionCookie {
			if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
				p.t.Errorf("the cookie is not protected: %v", c)
			}
			return c.Value
		}
	}
	p.t.Fatalf("sign-in of %s: %s without a cookie", name, answer.Status)
	return ""
}

// TestPermissions calls every route as everybody, and every per-host route for a host that some must not see.
func TestPermissions(t *testing.T) {
	p := newPermissions(t)
	calls := 0
	for _, r := range p.server.routes() {
		route := r.Method + " " + r.Pattern
		f, known := foreignCalls[route]
		if r.PerHost != known {
			t.Errorf("%s: it is per-host: %v, in foreignCalls: %v; expected both or none", route, r.PerHost, known)
		}
		if !known {
			f = foreignCall{path: strings.NewReplacer("{id}", "999999", "{kind}", "media", "{name}", "none").Replace(r.Pattern)}
		}
		for _, c := range p.callers {
			p.check(r, f, c)
			calls++
		}
		if r.Pattern == "/api/logout" {
			p.loginAll()
		}
	}
	t.Logf("%d calls", calls)
}

func (p *permissions) check(r api.Route, f foreignCall, c caller) {
	p.t.Helper()
	until := ""
	if f.shows && !c.limited && c.role > 0 {
		until = foreign
	}
	status, text := p.call(r.Method, p.ids.Replace(f.path), p.ids.Replace(f.body), c.session, until)
	name := fmt.Sprintf("%s %s as %s", r.Method, f.path, c.name)
	denied := status == http.StatusUnauthorized || status == http.StatusForbidden
	switch {
	case r.Permission == api.Public:
		if status == http.StatusUnauthorized {
			p.t.Errorf("%s: %d, but the route is public", name, status)
		}
	case c.role == 0:
		if status != http.StatusUnauthorized {
			p.t.Errorf("%s: %d, want 401", name, status)
		}
	case c.role < r.Permission.Role() || c.limited && !r.PerHost:
		if status != http.StatusForbidden {
			p.t.Errorf("%s: %d, want 403", name, status)
		}
	case denied:
		p.t.Errorf("%s: %d %s, but it is allowed", name, status, text)
	case c.limited && status != f.limited:
		p.t.Errorf("%s: %d %s, want %d", name, status, text, f.limited)
	case f.shows && !c.limited && !strings.Contains(text, foreign):
		p.t.Errorf("%s: the answer %.300s does not show %s, so the test proves nothing", name, text, foreign)
	}
	if (c.limited || c.role == 0) && strings.Contains(text, foreign) {
		p.t.Errorf("%s: the answer shows the foreign host: %.300s", name, text)
	}
}

// TestPermissions_ownHost lets a limited operator acknowledge on the own host, and one whose group may only look not.
func TestPermissions_ownHost(t *testing.T) {
	p := newPermissions(t)
	operator, admin := p.session("limited-operator"), p.session("administrator")
	var list struct {
		Problems []struct {
			ID string `json:"event_id"`
		}
		Total int
	}
	if err := json.Unmarshal([]byte(p.must("GET", "/api/problems", "", operator)), &list); err != nil || list.Total != 1 {
		t.Fatalf("problems of the own host: %+v %v", list, err)
	}
	acknowledge := "/api/problems/" + list.Problems[0].ID + "/acknowledge"
	p.must("POST", acknowledge, `{"message":"seen","author":"somebody else"}`, operator)
	if text := p.must("GET", "/api/audit?actor=limited-operator&search=acknowledge", "", admin); !strings.Contains(text, `"author":"limited-operator"`) {
		t.Errorf("audit: %s", text)
	}
	// The stream of somebody whose rights change ends, and the next request has the new ones.
	ended := make(chan string, 1)
	go func() {
		_, text := p.call("GET", "/api/live", "", operator, "\x00never")
		ended <- text
	}()
	for until := time.Now().Add(time.Minute); p.server.access.StreamCount() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the stream does not begin")
		}
	}
	p.must("PUT", "/api/user_groups/Owners", `{"grants":[{"host_group":"Own","role":"viewer"}]}`, admin)
	select {
	case <-ended:
	case <-time.After(40 * time.Second): // less than the minute after which the caller goes away
		t.Error("the stream of somebody who may do other things now goes on")
	}
	if status, text := p.call("POST", acknowledge, "{}", operator, ""); status != http.StatusForbidden {
		t.Errorf("acknowledged as viewer: %d %s", status, text)
	}
}

package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestDashboards saves, conflicts, restores, exports, plans and applies over the interface.
func TestDashboards(t *testing.T) {
	r := run(t, t.TempDir())
	must := func(status int, method, path, body string) string {
		t.Helper()
		return r.call(method, path, body, status)
	}
	var head struct {
		ID      string
		Version int
	}
	text := must(200, "POST", "/api/dashboards", `{"dashboard":{"name":"Fleet","widgets":[{"kind":"text","x":0,"y":0,"w":4,"h":2,"text":"one"}]}}`)
	if err := json.Unmarshal([]byte(text), &head); err != nil || head.Version != 1 {
		t.Fatalf("%s: %v", text, err)
	}
	path := "/api/dashboards/" + head.ID
	must(200, "PUT", path, `{"version":1,"note":"second","dashboard":{"name":"Fleet","widgets":[{"kind":"text","x":0,"y":0,"w":4,"h":2,"text":"two"}]}}`)
	conflict := must(409, "PUT", path, `{"version":1,"dashboard":{"name":"Fleet","widgets":[]}}`)
	if !strings.Contains(conflict, "you changed version 1, and version 2 was saved since") || strings.Contains(conflict, "config.db") {
		t.Errorf("conflict: %s", conflict)
	}
	if old := must(200, "GET", path+"?version=1", ""); !strings.Contains(old, `"text":"one"`) || !strings.Contains(old, `"newest":2`) {
		t.Errorf("version 1: %s", old)
	}
	if list := must(200, "GET", path+"/versions", ""); !strings.Contains(list, `"note":"second"`) {
		t.Errorf("versions: %s", list)
	}
	must(422, "POST", "/api/dashboards", `{"dashboard":{"name":"fleet","widgets":[]}}`)
	must(422, "POST", "/api/dashboards", `{"dashboard":{"name":"x","widgets":[{"kind":"pie","x":0,"y":0,"w":1,"h":1}]}}`)
	must(400, "POST", "/api/dashboards", `{"version":3,"dashboard":{"name":"x","widgets":[]}}`)
	must(400, "PUT", path, `{"dashboard":{"name":"Fleet","widgets":[]}}`)
	must(404, "GET", path+"?version=7", "")
	must(404, "GET", "/api/dashboards/999", "")
	must(400, "GET", "/api/dashboards/18446744073709551615", "")

	file := must(200, "GET", "/api/dashboard-file", "")
	if steps := must(200, "POST", "/api/dashboard-file/plan", file); !strings.Contains(steps, `"what":"unchanged"`) {
		t.Errorf("plan of what there is: %s", steps)
	}
	changed := strings.Replace(file, "text: two", "text: three", 1)
	if steps := must(200, "POST", "/api/dashboard-file/plan?replace=true", changed); !strings.Contains(steps, `"what":"change"`) || !strings.Contains(steps, "text: three") {
		t.Errorf("plan of a change: %s", steps)
	}
	if now := must(200, "GET", "/api/dashboard-file", ""); now != file {
		t.Errorf("a plan changed something: %s", now)
	}
	must(200, "PUT", "/api/dashboard-file", changed)
	if now := must(200, "GET", "/api/dashboard-file?name=fleet", ""); now != changed {
		t.Errorf("exported as\n%s\nafter\n%s", now, changed)
	}
	must(422, "PUT", "/api/dashboard-file", "dashboards: [{name: x, colour: red}]")
	must(404, "GET", "/api/dashboard-file?name=none", "")
	must(200, "PUT", "/api/dashboard-file?replace=true", "dashboards: []")
	must(404, "GET", path, "")
}

// TestPermissions_dashboards makes dashboards of every kind of sharing and looks who sees, changes and deletes them, and what of whose hosts
// their queries show.
func TestPermissions_dashboards(t *testing.T) {
	p := newPermissions(t)
	admin := p.session("administrator")
	p.must("PUT", "/api/user_groups/Wall", `{"grants":[{"host_group":"Own","role":"viewer"}]}`, admin)
	p.must("POST", "/api/users", fmt.Sprintf(`{"name":"waller","role":"viewer","all_hosts":false,"groups":["Wall"],"password":%q}`, testPassword), admin)
	p.must("POST", "/api/users", fmt.Sprintf(`{"name":"ada","role":"viewer","all_hosts":true,"groups":[],"password":%q}`, testPassword), admin)
	sessions := map[string]string{"waller": p.login("waller"), "ada": p.login("ada")}
	for _, name := range []string{"administrator", "editor", "limited-editor", "viewer", "limited-viewer"} {
		sessions[name] = p.session(name)
	}
	body := func(name, sharing string) string {
		return fmt.Sprintf(`{"dashboard":{"name":%q,"widgets":[]%s}}`, name, sharing)
	}
	try := func(want int, who, method, path, sent string) string {
		t.Helper()
		status, text := p.call(method, path, sent, sessions[who], "")
		if status != want {
			t.Errorf("%s %s %s as %s: %d %s, want %d", method, path, sent, who, status, text, want)
		}
		return text
	}
	for _, one := range []struct {
		maker, name, sharing string
		sees, changes        string
	}{
		{"editor", "plain", "", "administrator editor viewer ada", "administrator editor"},
		{"editor", "for everyone", `,"everyone":true`, "administrator editor limited-editor viewer limited-viewer waller ada", "administrator editor"},
		{"editor", "mine", `,"private":true`, "administrator editor", "administrator editor"},
		{"ada", "of ada", `,"private":true`, "administrator ada", "administrator ada"},
		{"limited-viewer", "of limited", `,"private":true`, "administrator limited-viewer", "administrator limited-viewer"},
		{"editor", "for the wall", `,"private":true,"groups":["wall"]`, "administrator editor waller", "administrator editor"},
		{"administrator", "plain and wall", `,"groups":["Wall"]`, "administrator editor viewer ada waller", "administrator editor"},
		{"limited-editor", "of owners", `,"groups":["Owners"]`, "administrator editor viewer ada limited-editor limited-viewer", "administrator editor limited-editor"},
		{"administrator", "given", `,"owner":"ada","private":true`, "administrator ada", "administrator ada"},
	} {
		var head struct{ ID string }
		if err := json.Unmarshal([]byte(try(200, one.maker, "POST", "/api/dashboards", body(one.name, one.sharing))), &head); err != nil {
			t.Fatal(err)
		}
		path := "/api/dashboards/" + head.ID
		for who := range sessions {
			sees, changes := inList(one.sees, who), inList(one.changes, who)
			found, change := http.StatusNotFound, http.StatusNotFound
			if sees {
				found, change = http.StatusOK, http.StatusForbidden
			}
			if changes {
				change = http.StatusConflict // version 7 is not the newest
			}
			if text := try(found, who, "GET", path, ""); sees && !strings.Contains(text, fmt.Sprintf(`"editable":%v`, changes)) {
				t.Errorf("%s as %s: %s", one.name, who, text)
			}
			try(found, who, "GET", path+"/versions", "")
			if !changes {
				try(change, who, "DELETE", path, "")
			}
			try(change, who, "PUT", path, strings.Replace(body(one.name, one.sharing), "{", `{"version":7,`, 1))
			for list, line := range map[string]string{
				"/api/dashboards": `"name":"` + one.name + `"`, "/api/dashboard-file": "- name: " + one.name + "\n", "/api/search?limit=100&q=" + url.QueryEscape(one.name): `"title":"` + one.name + `"`,
			} {
				if text := try(200, who, "GET", list, ""); strings.Contains(text, line) != sees {
					t.Errorf("%s as %s has %q: %v; want %v", list, who, one.name, !sees, sees)
				}
			}
		}
	}
	try(403, "viewer", "POST", "/api/dashboards", body("of viewer", ""))
	try(403, "viewer", "POST", "/api/dashboards", body("of viewer", `,"private":true,"groups":["Wall"]`))
	try(403, "limited-editor", "POST", "/api/dashboards", body("for all", `,"everyone":true`))
	try(403, "limited-editor", "POST", "/api/dashboards", body("for the others", `,"groups":["Wall"]`))
	try(403, "ada", "POST", "/api/dashboards", body("a gift", `,"private":true,"owner":"viewer"`))
	// Nor by a second version, which would also make room for the next one.
	var mine struct{ ID string }
	if err := json.Unmarshal([]byte(try(200, "ada", "POST", "/api/dashboards", body("a present", `,"private":true`))), &mine); err != nil {
		t.Fatal(err)
	}
	try(403, "ada", "PUT", "/api/dashboards/"+mine.ID, strings.Replace(body("a present", `,"private":true,"owner":"viewer"`), "{", `{"version":1,`, 1))
	try(422, "administrator", "POST", "/api/dashboards", body("x", `,"owner":"nobody-here"`))
	try(422, "administrator", "POST", "/api/dashboards", body("x", `,"groups":["no such"]`))
	try(422, "administrator", "POST", "/api/dashboards", body("x", `,"private":true,"everyone":true`))
	try(422, "editor", "POST", "/api/dashboards", body("of ada", "")) // the name is taken, also by what cannot be seen
	try(403, "editor", "PUT", "/api/dashboard-file", "dashboards: [{name: of ada, widgets: []}]")
	for n := range 25 {
		want := 200
		if n >= 19 { // with "of limited" these are 20
			want = 403
		}
		try(want, "limited-viewer", "POST", "/api/dashboards", body(fmt.Sprintf("one of many %d", n), `,"private":true`))
	}

	// Replacing everything by a file leaves what an editor cannot see, and a file gives the same bytes again.
	file := try(200, "editor", "GET", "/api/dashboard-file", "")
	try(200, "editor", "PUT", "/api/dashboard-file?replace=true", file)
	if again := try(200, "editor", "GET", "/api/dashboard-file", ""); again != file {
		t.Errorf("exported as\n%s\nafter\n%s", again, file)
	}
	if text := try(200, "ada", "GET", "/api/dashboards", ""); !strings.Contains(text, `"of ada"`) {
		t.Errorf("an editor's file deleted somebody else's private dashboard: %s", text)
	}

	// What an owner leaves behind is nobody's, and not that of the next of the name.
	var users struct{ Users []struct{ ID, Name string } }
	if err := json.Unmarshal([]byte(try(200, "administrator", "GET", "/api/users", "")), &users); err != nil {
		t.Fatal(err)
	}
	for _, u := range users.Users {
		if u.Name == "ada" {
			try(200, "administrator", "DELETE", "/api/users/"+u.ID, "")
		}
	}
	p.must("POST", "/api/users", fmt.Sprintf(`{"name":"ada","role":"viewer","all_hosts":true,"groups":[],"password":%q}`, testPassword), admin)
	sessions["ada"] = p.login("ada")
	if text := try(200, "ada", "GET", "/api/dashboards", ""); strings.Contains(text, `"of ada"`) {
		t.Errorf("another user of the same name sees %s", text)
	}
}

// inList reports whether a word is in a list with spaces between.
func inList(list, word string) bool { return strings.Contains(" "+list+" ", " "+word+" ") }

// TestPermissions_dashboardsAtOnce has a viewer make many dashboards at once: no more than one after the other.
func TestPermissions_dashboardsAtOnce(t *testing.T) {
	p := newPermissions(t)
	session := p.session("limited-viewer")
	var wg sync.WaitGroup
	var made atomic.Int64
	for n := range 60 {
		wg.Go(func() {
			if status, _ := p.call("POST", "/api/dashboards", fmt.Sprintf(`{"dashboard":{"name":"at once %d","private":true,"widgets":[]}}`, n), session, ""); status == http.StatusOK {
				made.Add(1)
			}
		})
	}
	wg.Wait()
	if made.Load() != 20 {
		t.Errorf("%d dashboards were made, want 20", made.Load())
	}
}

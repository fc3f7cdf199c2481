package confdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tidemark/model"
)

// importText imports an export given as the inside of zabbix_export.
func importText(t testing.TB, d *DB, inside string) *Report {
	t.Helper()
	r, err := d.Import(context.Background(), "text", []byte(`{"zabbix_export":{"version":"6.0",`+inside+`}}`), ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// owned is a template or host with trapper items, and with links.
func owned(kind, name, links string, keys ...string) string {
	var items, templates []string
	for _, k := range keys {
		items = append(items, fmt.Sprintf(`{"name":%q,"key":%q,"type":"TRAP"}`, k+" of "+name, k))
	}
	for l := range strings.FieldsSeq(links) {
		templates = append(templates, fmt.Sprintf(`{"name":%q}`, l))
	}
	return fmt.Sprintf(`{%q:%q,"items":[%s],"templates":[%s]}`, kind, name, strings.Join(items, ","), strings.Join(templates, ","))
}

// itemNames are "id name" of a host's items, by key.
func itemNames(t testing.TB, d *DB, host string) string {
	var list []string
	for _, i := range hosts(t, d)[host].Items {
		list = append(list, fmt.Sprintf("%s=%s/%d", i.Key, i.Name, i.ID))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func TestInherit_nearestWins(t *testing.T) {
	d := open(t, t.TempDir())
	importText(t, d, `"templates":[`+owned("template", "far", "", "a", "b", "c")+`,`+owned("template", "near", "far", "b", "c")+`],"hosts":[`+
		owned("host", "h", "near", "c")+`]`)
	if got, want := itemNames(t, d, "h"), "a=a of far/3 b=b of near/2 c=c of h/1"; got != want {
		t.Fatalf("items %s, want %s", got, want)
	}
	// The template gets an item more; another host shares the definition under its own ids.
	importText(t, d, `"templates":[`+owned("template", "far", "", "d")+`],"hosts":[`+owned("host", "g", "near")+`]`)
	if got, want := itemNames(t, d, "h"), "a=a of far/3 b=b of near/2 c=c of h/1 d=d of far/4"; got != want && !strings.HasPrefix(got, "a=a of far/3 b=b of near/2 c=c of h/1 d=d of far/") {
		t.Errorf("items of h %s, want %s", got, want)
	}
	if got := itemNames(t, d, "g"); strings.Count(got, "=") != 4 {
		t.Errorf("items of g %s, want 4", got)
	}
}

func TestInherit_keepsIDs(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	importText(t, d, `"templates":[`+owned("template", "one", "", "a")+`,`+owned("template", "two", "", "a")+`],"hosts":[`+owned("host", "h", "one two")+`]`)
	if got, want := itemNames(t, d, "h"), "a=a of one/1"; got != want {
		t.Fatalf("items %s, want %s", got, want)
	}
	id := hosts(t, d)["h"].Host.ID
	if err := d.UnlinkTemplate(ctx, id, "one"); err != nil {
		t.Fatal(err)
	}
	if got, want := itemNames(t, d, "h"), "a=a of two/1"; got != want {
		t.Errorf("after unlinking: %s, want %s: the key keeps its id", got, want)
	}
	importText(t, d, `"hosts":[`+owned("host", "h", "", "a")+`]`)
	if got, want := itemNames(t, d, "h"), "a=a of h/1"; got != want {
		t.Errorf("after the host's own item: %s, want %s", got, want)
	}
	if err := d.UnlinkTemplate(ctx, id, "two"); err != nil {
		t.Fatal(err)
	}
	if got, want := itemNames(t, d, "h"), "a=a of h/1"; got != want {
		t.Errorf("after unlinking the last: %s, want %s", got, want)
	}
}

func TestImport_countsLinksAndDependencies(t *testing.T) {
	d := open(t, t.TempDir())
	file := func(links, dependencies string) string {
		return `"templates":[` + owned("template", "t", "", "a") + `],"hosts":[` + owned("host", "h", links, "k") + `],"triggers":[
			{"name":"one","expression":"last(/h/k)>1","dependencies":[` + dependencies + `]},{"name":"two","expression":"last(/h/k)>2"}]`
	}
	importText(t, d, file("", ""))
	r := importText(t, d, file("t", `{"name":"two","expression":"last(/h/k)>2"}`))
	counts := map[string]Count{}
	for _, c := range r.Counts {
		counts[c.Kind] = c
	}
	if c := counts["hosts"]; c.Updated != 1 || c.Unchanged != 0 {
		t.Errorf("linking a template counts as %+v, want one updated host", c)
	}
	if c := counts["triggers"]; c.Updated != 1 || c.Unchanged != 1 {
		t.Errorf("a new dependency counts as %+v, want one updated trigger", c)
	}
	if list := hosts(t, d)["h"].Triggers; len(list[0].DependsOn) != 1 || list[0].DependsOn[0] != list[1].ID {
		t.Errorf("triggers %+v, want the first to depend on the second", list)
	}
	if r := importText(t, d, file("t", "")); !r.Changed() || len(hosts(t, d)["h"].Triggers[0].DependsOn) != 0 {
		t.Errorf("the dependency is still there after an import without it: %s", r)
	}
}

func TestImport_refusesLoops(t *testing.T) {
	d := open(t, t.TempDir())
	r := importText(t, d, `"templates":[`+owned("template", "a", "b", "x")+`,`+owned("template", "b", "c")+`,`+owned("template", "c", "a c")+`]`)
	var loops []string
	for _, m := range r.Remarks {
		if strings.Contains(m.Reason, "would make a loop") {
			loops = append(loops, m.Path)
		}
	}
	if !slices.Equal(loops, []string{"template c", "template c"}) {
		t.Errorf("refused loops at %q, want twice at template c:\n%s", loops, r)
	}
}

func TestChanges_namesTouchedHosts(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	importText(t, d, `"templates":[`+owned("template", "t", "", "a")+`],"hosts":[`+owned("host", "h1", "t")+`,`+owned("host", "h2", "")+`]`)
	ids := map[string]model.HostID{}
	for name, h := range hosts(t, d) {
		ids[name] = h.Host.ID
	}
	revision, err := d.Revision(ctx)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(want ...model.HostID) {
		t.Helper()
		now, got, gone, err := d.Changes(ctx, revision)
		if err != nil || !slices.Equal(got, want) || len(gone) > 0 {
			t.Errorf("changed %v, deleted %v, %v, want changed %v", got, gone, err, want)
		}
		revision = now
	}
	importText(t, d, `"templates":[`+strings.Replace(owned("template", "t", "", "a"), "a of t", "renamed", 1)+`]`)
	changed(ids["h1"])
	importText(t, d, `"hosts":[`+owned("host", "h2", "", "x")+`]`)
	changed(ids["h2"])
	importText(t, d, `"hosts":[`+owned("host", "h2", "", "x")+`]`)
	changed()
	if err := d.SetGlobalMacros(ctx, []model.Macro{{Name: "{$G}", Value: "1"}}); err != nil {
		t.Fatal(err)
	}
	changed(ids["h1"], ids["h2"])
	if err := d.SetGlobalMacros(ctx, []model.Macro{{Name: "{$G}", Value: "1"}}); err != nil {
		t.Fatal(err)
	}
	changed()
	select {
	case <-d.Changed():
	default:
		t.Error("Changed tells nothing")
	}
	if err := d.DeleteHost(ctx, ids["h1"]); err != nil {
		t.Fatal(err)
	}
	_, _, gone, err := d.Changes(ctx, revision)
	if err != nil || !slices.Equal(gone, []model.HostID{ids["h1"]}) {
		t.Errorf("deleted %v, %v, want h1", gone, err)
	}
	if err := d.DeleteHost(ctx, ids["h1"]); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleting it again: %v, want ErrNotFound", err)
	}
}

func TestSetGlobalMacros_refuses(t *testing.T) {
	d := open(t, t.TempDir())
	err := d.SetGlobalMacros(context.Background(), []model.Macro{{Name: "{$A}", Value: "1"}, {Name: "B", Value: "1"}})
	if !errors.Is(err, ErrInvalid) {
		t.Errorf("error %v, want ErrInvalid", err)
	}
	if list, _ := d.GlobalMacros(context.Background()); len(list) != 0 {
		t.Errorf("macros %v after a refused change, want none", list)
	}
}

func TestRegisterHost(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	id, made, err := d.RegisterHost(ctx, "early", "tidemark")
	if err != nil || !made {
		t.Fatalf("RegisterHost without templates: %d, %v, %v", id, made, err)
	}
	importText(t, d, `"templates":[`+owned("template", TidemarkAgentTemplate, "", "ours")+`,`+owned("template", ZabbixAgentTemplate, "", "theirs")+`]`)
	tests := []struct{ name, metadata, key string }{{"a", "Linux Tidemark 1.0", "ours"}, {"b", "Linux", "theirs"}, {"c d-e_f.g", "", "theirs"}}
	for _, tt := range tests {
		id, made, err := d.RegisterHost(ctx, tt.name, tt.metadata, Interface{IP: "192.0.2.7"})
		if err != nil || !made {
			t.Fatalf("RegisterHost(%s): %v, %v", tt.name, made, err)
		}
		h := hosts(t, d)[tt.name]
		if len(h.Items) != 1 || h.Items[0].Key != tt.key || h.Host.ID != id || !slices.Equal(h.Host.Groups, []string{RegisteredGroup}) {
			t.Errorf("host %s: %+v, want item %s", tt.name, h, tt.key)
		}
		revision, _ := d.Revision(ctx)
		again, made, err := d.RegisterHost(ctx, tt.name, tt.metadata)
		if err != nil || made || again != id {
			t.Errorf("RegisterHost(%s) again: %d, %v, %v", tt.name, again, made, err)
		}
		if now, _ := d.Revision(ctx); now != revision {
			t.Errorf("registering %s again raised the revision", tt.name)
		}
	}
	if _, _, err := d.RegisterHost(ctx, "a", "other"); err != nil || hosts(t, d)["a"].Host.Metadata != "other" {
		t.Errorf("metadata %q, %v, want other", hosts(t, d)["a"].Host.Metadata, err)
	}
	for _, name := range []string{"", "a/b", " a", "a\n", strings.Repeat("x", 129)} {
		if _, _, err := d.RegisterHost(ctx, name, ""); !errors.Is(err, ErrInvalid) {
			t.Errorf("RegisterHost(%q): %v, want ErrInvalid", name, err)
		}
	}
}

// TestInherit_renamedItem gives the host's own item, found by its uuid, the key of an inherited one, and takes the own one with an inherited one's key away.
func TestInherit_renamedItem(t *testing.T) {
	d := open(t, t.TempDir())
	own := func(key, uuid string) string {
		return `"hosts":[{"host":"h","name":"h","groups":[{"name":"G"}],"templates":[{"name":"one"}],"items":[{"key":"` + key + `","name":"own","type":"TRAP","uuid":"` + uuid + `"}]}]`
	}
	f := func(what, inside, want string) {
		t.Helper()
		importText(t, d, inside)
		if got := itemNames(t, d, "h"); got != want {
			t.Errorf("%s: items %s, want %s", what, got, want)
		}
	}
	const uuid = "0123456789ab4def8123456789abcdef"
	f("as made", `"templates":[`+owned("template", "one", "", "a", "b")+`],`+own("a", uuid), "a=own/1 b=b of one/2")
	f("own a is b now", own("b", uuid), "a=a of one/3 b=own/1")
	r, err := d.Import(context.Background(), "x", []byte(`{"zabbix_export":{"version":"7.0","hosts":[{"host":"h","name":"h","groups":[{"name":"G"}],"templates":[{"name":"one"}]}]}}`), ImportOptions{DeleteMissing: true})
	if err != nil || !r.Changed() {
		t.Fatal(r, err)
	}
	if got, want := itemNames(t, d, "h"), "a=a of one/3 b=b of one/4"; got != want {
		t.Errorf("without its own: items %s, want %s", got, want)
	}
}

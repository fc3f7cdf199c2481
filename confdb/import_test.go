package confdb

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tidemark/model"
)

var update = flag.Bool("update", false, "rewrite the golden reports")

// golden compares a text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name + ".golden"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n got %s\nwant %s", name, got, want)
	}
}

// dump is all configuration as text.
func dump(t testing.TB, d *DB) string {
	t.Helper()
	var b strings.Builder
	list := hosts(t, d)
	var names []string
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		h := list[name]
		fmt.Fprintf(&b, "host %s %q groups %q templates %v tags %v macros %v and %v\n", h.Host.Host, h.Host.Name, h.Host.Groups,
			h.Host.Templates, h.Host.Tags, h.Host.Macros, h.TemplateMacros)
		for _, i := range h.Items {
			fmt.Fprintf(&b, "  item %d %s %q type %d %s delay %q history %q trends %q units %q steps %v tags %v\n", i.ID, i.Key, i.Name,
				i.Type, i.ValueType, i.Delay, i.HistoryText, i.TrendsText, i.Units, i.Steps, i.Tags)
		}
		for _, tr := range h.Triggers {
			fmt.Fprintf(&b, "  trigger %d %q %s | %s, %s, depends on %v\n", tr.ID, tr.Name, tr.Expression, tr.Recovery, tr.Severity, tr.DependsOn)
		}
	}
	return b.String()
}

func TestImport_golden(t *testing.T) {
	d := open(t, t.TempDir())
	var b strings.Builder
	for _, name := range []string{"template-6.0.yaml", "host-7.0.json", "template-6.4.yaml", "mistakes-7.0.yaml"} {
		b.WriteString(importFile(t, d, name).String())
	}
	b.WriteString(dump(t, d))
	golden(t, "imports", b.String())
}

func TestImport_againChangesNothing(t *testing.T) {
	for _, name := range []string{"template-6.0.yaml", "template-6.4.yaml", "mistakes-7.0.yaml"} {
		for _, missing := range []bool{false, true} {
			d := open(t, t.TempDir())
			src, err := os.ReadFile("testdata/" + name)
			if err != nil {
				t.Fatal(err)
			}
			importFile(t, d, name)
			before := dump(t, d)
			revision, err := d.Revision(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			r, err := d.Import(context.Background(), name, src, ImportOptions{DeleteMissing: missing})
			if err != nil {
				t.Fatal(err)
			}
			if r.Changed() {
				t.Errorf("%s, delete missing %v: the second import changed something: %s", name, missing, r)
			}
			if after := dump(t, d); after != before {
				t.Errorf("%s: after the second import\n%s\nbefore\n%s", name, after, before)
			}
			if now, _ := d.Revision(context.Background()); now != revision {
				t.Errorf("%s: revision %d after the second import, before %d", name, now, revision)
			}
		}
	}
}

func TestImport_matchesByUUID(t *testing.T) {
	d := open(t, t.TempDir())
	importFile(t, d, "template-6.0.yaml")
	importFile(t, d, "host-7.0.json")
	find := func(key string) *model.ItemConfig {
		for i := range hosts(t, d)["queue-1"].Items {
			if item := &hosts(t, d)["queue-1"].Items[i]; item.Key == key {
				return item
			}
		}
		return nil
	}
	before := find("queue.length")
	importFile(t, d, "template-6.4.yaml") // renames the key
	after := find("queue.size")
	if before == nil || after == nil || before.ID != after.ID {
		t.Errorf("before %+v, after %+v, want the same id: the uuid is the same", before, after)
	}
	if find("net.if.in[ifInOctets.1]") == nil {
		t.Error("an item that the file does not have is gone")
	}
	src, err := os.ReadFile("testdata/template-6.4.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Import(context.Background(), "x", src, ImportOptions{DeleteMissing: true})
	if err != nil {
		t.Fatal(err)
	}
	if find("net.if.in[ifInOctets.1]") != nil || !r.Changed() {
		t.Errorf("with DeleteMissing the item is still there: %s", r)
	}
	if find("proc.num[queue]") == nil {
		t.Error("an item of another template is gone")
	}
}

func TestImport_refused(t *testing.T) {
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	laughs := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		p := string(c - 1)
		laughs += fmt.Sprintf("%c: &%c [*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s]\n", c, c, p, p, p, p, p, p, p, p, p, p)
	}
	tests := []struct{ name, src, want string }{
		{"empty", " \n", "the file is empty; expected a Zabbix export in YAML or JSON"},
		{"XML", "<?xml version=\"1.0\"?><zabbix_export/>", "the file is XML; expected a Zabbix export in YAML or JSON"},
		{"no export", `{"a":1}`, "no zabbix_export at the top"},
		{"list", "- a\n", "no zabbix_export at the top"},
		{"old version", "zabbix_export:\n  version: '5.0'\n", `line 2: export version "5.0"; expected 5.4 to 7.4`},
		{"no version", `{"zabbix_export":{}}`, `export version ""`},
		{"broken JSON", "{\"zabbix_export\":\n{\"version\":}", "line 2:"},
		{"cut JSON", "{\"zabbix_export\":{\"version\":\"7.0\"", "line 1:"},
		{"more JSON", `{"zabbix_export":{"version":"7.0"}} {}`, "more after the end"},
		{"broken YAML", "zabbix_export:\n  version: '7.0\n", "found unexpected end of stream"},
		{"deep JSON", `{"zabbix_export":` + deep + `}`, "nested deeper than 64 levels"},
		{"deep YAML", "zabbix_export: " + deep + "\n", "nested deeper than 64 levels"},
		{"billion laughs", laughs, "aliases counted as often as they are used"},
		{"a few laughs", laughs[:strings.Index(laughs, "f: &f")], "stand for more than 10000 values"},
		{"too big", strings.Repeat(" ", MaxImportBytes+1), "at most 67108864 are taken"},
		{"too many lines", strings.Repeat("\n", maxMarks) + "a: b", "split the file"},
	}
	d := open(t, t.TempDir())
	for _, tt := range tests {
		_, err := d.Import(context.Background(), "f", []byte(tt.src), ImportOptions{})
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "import f: ") {
			t.Errorf("%s: error %v, want it to say %q", tt.name, err, tt.want)
		}
	}
}

// genExport draws an export-like document: a few templates and hosts with clashing names and keys.
func genExport(t *rapid.T) []byte {
	pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	type object map[string]any
	owner := func(kind, name string) object {
		o := object{kind: name, "groups": []object{{"name": pick("group", "g1", "g2")}}}
		var items, rules []object
		for range rapid.IntRange(0, 4).Draw(t, "items") {
			key := pick("key", "a", "b", "c[1]", "d[{$M}]", "bad[")
			i := object{"name": pick("name", "n1", "n2"), "key": key, "uuid": pick("uuid", "", "", "u1", "u2"), "type": pick("type", "TRAP", "ZABBIX_ACTIVE", "SNMP_AGENT", "ODD")}
			if rapid.Bool().Draw(t, "trigger") {
				i["triggers"] = []object{{"name": pick("trigger name", "t1", "t2"), "uuid": pick("trigger uuid", "", "v1", "v2"), "expression": "last(/" + name + "/" + key + ")>" + pick("limit", "1", "2")}}
			}
			items = append(items, i)
		}
		if rapid.Bool().Draw(t, "rule") {
			rules = append(rules, object{"key": "r", "name": "r", "item_prototypes": []object{{"key": "p[{#X}]", "name": "p", "type": "TRAP"}}})
		}
		if rapid.Bool().Draw(t, "linked") {
			o["templates"] = []object{{"name": pick("link", "t1", "t2", "t3")}}
		}
		o["items"], o["discovery_rules"] = items, rules
		o["macros"] = []object{{"macro": "{$M}", "value": pick("macro", "1", "2")}}
		return o
	}
	var templates, hosts []object
	for _, name := range []string{"t1", "t2"} {
		if rapid.Bool().Draw(t, "template") {
			templates = append(templates, owner("template", name))
		}
	}
	for _, name := range []string{"h1", "h2"} {
		if rapid.Bool().Draw(t, "host") {
			hosts = append(hosts, owner("host", name))
		}
	}
	b, err := json.Marshal(object{"zabbix_export": object{"version": pick("version", "6.0", "7.0"), "templates": templates, "hosts": hosts}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// emptyFile is an empty database, to begin with where many are needed; none on PostgreSQL.
func emptyFile(t *testing.T) []byte {
	t.Helper()
	if os.Getenv(onPostgres) != "" {
		return nil
	}
	dir := t.TempDir()
	d, err := Open(context.Background(), dir, options(dir, Options{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(dir + "/" + FileName)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestImport_property(t *testing.T) {
	dir := t.TempDir()
	empty := emptyFile(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		sub := fmt.Sprintf("%s/%d", dir, n)
		if err := os.Mkdir(sub, 0o700); err != nil {
			rt.Fatal(err)
		}
		if len(empty) > 0 {
			if err := os.WriteFile(sub+"/"+FileName, empty, 0o600); err != nil {
				rt.Fatal(err)
			}
		}
		d, err := Open(context.Background(), sub, options(sub, Options{IDs: &counter{}}))
		if err != nil {
			rt.Fatal(err)
		}
		defer d.Close() //nolint:errcheck // checked elsewhere
		for range rapid.IntRange(1, 2).Draw(rt, "files") {
			src := genExport(rt)
			o := ImportOptions{DeleteMissing: rapid.Bool().Draw(rt, "delete missing")}
			if _, err := d.Import(context.Background(), "f", src, o); err != nil {
				rt.Fatal(err)
			}
			before := dump(t, d)
			r, err := d.Import(context.Background(), "f", src, o)
			if err != nil {
				rt.Fatal(err)
			}
			if r.Changed() {
				rt.Fatalf("the second import of %s changed something: %s", src, r)
			}
			if after := dump(t, d); after != before {
				rt.Fatalf("after the second import of %s\n%s\nbefore\n%s", src, after, before)
			}
			checkKeys(rt, d, t)
		}
	})
}

// checkKeys checks what holds for every configuration: keys and item ids are unique.
func checkKeys(rt *rapid.T, d *DB, t *testing.T) {
	ids := map[model.ItemID]bool{}
	for _, h := range hosts(t, d) {
		keys := map[string]bool{}
		for _, i := range h.Items {
			if keys[i.Key] || ids[i.ID] || i.ID == 0 {
				rt.Fatalf("host %s: item %d %s is there twice or has no id", h.Host.Host, i.ID, i.Key)
			}
			keys[i.Key], ids[i.ID] = true, true
		}
	}
}

func FuzzImport(f *testing.F) {
	for _, name := range []string{"template-6.0.yaml", "host-7.0.json", "template-6.4.yaml", "mistakes-7.0.yaml"} {
		src, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Add([]byte("zabbix_export: &a\n  version: '7.0'\n  hosts: [*a]\n"))
	f.Add([]byte(`{"zabbix_export":{"version":"6.0","hosts":[{"host":"h","items":[{"key":"k","preprocessing":[{"type":"TRIM","params":"a\nb"}]}]}]}}`))
	d := open(f, f.TempDir())
	f.Fuzz(func(t *testing.T, src []byte) {
		ctx := context.Background()
		if _, err := d.Import(ctx, "f", src, ImportOptions{DeleteMissing: true}); err != nil {
			return
		}
		r, err := d.Import(ctx, "f", src, ImportOptions{DeleteMissing: true})
		if err != nil || r.Changed() {
			t.Errorf("the second import: %v, %v", r, err)
		}
		dump(t, d)
	})
}

// Imports from a database bring macros that hold for all hosts: they are added to those that there are, and a secret without value keeps its own.
func TestImport_globalMacros(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	if err := d.SetGlobalMacros(ctx, []model.Macro{{Name: "{$OWN}", Value: "1"}, {Name: "{$KEY}", Value: "hidden", Secret: true}}); err != nil {
		t.Fatal(err)
	}
	file := []byte(`{"zabbix_export":{"version":"6.0","global_macros":[{"macro":"{$KEY}","type":"SECRET_TEXT"},{"macro":"{$SITE}","value":"Berlin"}]}}`)
	for _, want := range []Count{{Kind: kindGlobalMacro, Created: 1, Unchanged: 1}, {Kind: kindGlobalMacro, Unchanged: 2}} {
		r, err := d.Import(ctx, "a", file, ImportOptions{})
		if err != nil || len(r.Counts) != 1 || r.Counts[0] != want || len(r.Remarks) > 0 {
			t.Fatalf("%+v, %v; expected %+v", r, err, want)
		}
	}
	got, err := d.GlobalMacros(ctx)
	want := []model.Macro{{Name: "{$KEY}", Value: "hidden", Secret: true}, {Name: "{$OWN}", Value: "1"}, {Name: "{$SITE}", Value: "Berlin"}}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%+v, %v", got, err)
	}
}

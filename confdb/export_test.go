package confdb

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tidemark/server/templates"
)

// exported is everything in a database.
func exported(t testing.TB, d *DB, version string) string {
	t.Helper()
	text, err := d.Export(context.Background(), ExportOptions{Version: version, All: true})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// roundTrip imports a file, exports it in both versions, imports that elsewhere and exports it again.
func roundTrip(t testing.TB, name string, src []byte) {
	t.Helper()
	first := open(t, t.TempDir())
	if _, err := first.Import(context.Background(), name, src, ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"6.0", "7.0"} {
		text := exported(t, first, version)
		second := open(t, t.TempDir())
		r, err := second.Import(context.Background(), name, []byte(text), ImportOptions{})
		if err != nil {
			t.Fatalf("%s: import of the export in %s: %v\n%s", name, version, err, text)
		}
		for _, m := range r.Remarks {
			if strings.Contains(m.Reason, "not taken") && !strings.Contains(m.Reason, "dependency not taken") {
				t.Errorf("%s: in the export in %s: line %d: %s: %s", name, version, m.Line, m.Path, m.Reason)
			}
		}
		if again := exported(t, second, version); again != text {
			t.Errorf("%s: exported again in %s:\n%s", name, version, firstDifference(text, again))
		}
		if r, err = first.Import(context.Background(), name, []byte(exported(t, first, "7.0")), ImportOptions{DeleteMissing: true}); err != nil || r.Changed() {
			t.Errorf("%s: an import of its own export changes the database: %v\n%s", name, err, r)
		}
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return strings.Join(x[max(0, i-5):min(len(x), i+3)], "\n") + "\n--- again ---\n" + strings.Join(y[max(0, i-5):min(len(y), i+3)], "\n")
		}
	}
	return "one is longer"
}

func TestExport_roundTrip(t *testing.T) {
	names, err := filepath.Glob("testdata/*.[yj]*")
	if err != nil || len(names) < 4 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		roundTrip(t, name, src)
	}
	shipped := templates.Files()
	list, err := fs.Glob(shipped, "*.yaml")
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	for _, name := range list {
		src, err := fs.ReadFile(shipped, name)
		if err != nil {
			t.Fatal(err)
		}
		roundTrip(t, name, src)
	}
}

func TestExport_secrets(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	const file = `zabbix_export: {version: '7.0', templates: [{template: T, macros: [{macro: '{$S}', value: hidden, type: SECRET_TEXT}, {macro: '{$V}', value: shown}]}], hosts: [{host: h, templates: [{name: T}]}]}`
	if _, err := d.Import(ctx, "file", []byte(file), ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	text := exported(t, d, "7.0")
	if strings.Contains(text, "hidden") || !strings.Contains(text, "shown") {
		t.Errorf("the export has the secret or lacks the value:\n%s", text)
	}
	if r, err := d.Import(ctx, "again", []byte(text), ImportOptions{DeleteMissing: true}); err != nil || r.Changed() {
		t.Errorf("the export changes its own database: %v\n%s", err, r)
	}
	if got := hosts(t, d)["h"].TemplateMacros[0].Value; got != "hidden" {
		t.Errorf("the secret is %q after an import of the export", got)
	}
	for _, o := range []ExportOptions{{Version: "5.4", All: true}, {Version: "7.0", Hosts: []string{"nobody"}}, {Version: "7.0", Templates: []string{"h"}}} {
		if text, err := d.Export(ctx, o); err == nil {
			t.Errorf("%+v gives %s", o, text)
		}
	}
}

// TestExport_folder makes the round trip with all files of the folder in TIDEMARK_TEMPLATES, each by itself.
func TestExport_folder(t *testing.T) {
	dir := os.Getenv("TIDEMARK_TEMPLATES")
	if dir == "" {
		return // TestExport_roundTrip takes the files that are there
	}
	eachTemplate(t, dir, func(name string, src []byte) { roundTrip(t, name, src) })
}

func eachTemplate(t *testing.T, dir string, f func(name string, src []byte)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		src, err := os.ReadFile(path)
		if err == nil {
			f(strings.TrimPrefix(path, dir+"/"), src)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEmit_anyText writes and reads trees of arbitrary texts.
func TestEmit_anyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`( |\t|\n|\r|[a-c:#'"{}&*!|>%@-]|yes|no|~|null|1|é|\x{2028}|\x{85}){0,12}`)).Draw(t, "text")
		key := rapid.StringMatching(`[a-z_]{1,5}`).Draw(t, "key")
		o, inner := newOut(), newOut()
		inner.put(key, scalarOf(text))
		inner.list("list", []*node{scalarOf(text), scalarOf("x")})
		o.put("object", &inner.node)
		o.list("objects", []*node{&inner.node, &inner.node})
		src := emitYAML(&o.node)
		got, err := parseYAML(src)
		if err != nil {
			t.Fatalf("%v\n%s", err, src)
		}
		for _, n := range append(got.field("objects").kids, got.field("object")) {
			if have := n.field(key); have == nil || have.text != text {
				t.Fatalf("%q became %+v in\n%s", text, have, src)
			}
			if list := n.field("list").kids; list[0].text != text {
				t.Fatalf("%q became %q in a list", text, list[0].text)
			}
		}
	})
}

package discovery

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/confdb"
)

const secretPrototype = `{"zabbix_export":{"version":"7.0","host_groups":[{"name":"G"}],"hosts":[{"host":"h","name":"h","groups":[{"name":"G"}],"discovery_rules":[{"name":"R","type":"TRAP","key":"r",
"host_prototypes":[{"host":"made-{#H}","name":"made {#H}","group_links":[{"group":{"name":"G"}}],"macros":[{"macro":"{$PASS}","type":"SECRET_TEXT","value":"canary {#H}"},{"macro":"{$OPEN}","value":"plain"}]}]}]}]}}`

// TestDiscover_secretMacro has hosts made with a secret macro of their prototype: it is sealed in the database, in no export, and stays when an export is
// imported again.
func TestDiscover_secretMacro(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	var b *bench
	open := func() {
		t.Helper()
		db, err := confdb.Open(ctx, dir, confdb.Options{IDs: &ids{}})
		if err != nil {
			t.Fatal(err)
		}
		b = benchOf(t, db)
	}
	made := func(name, want string) {
		t.Helper()
		b.give("h", "r", `[{"{#H}":"`+name+`"}]`)
		if got, _ := b.cache.Snapshot().UserMacro(b.host("made-"+name), "{$PASS}"); got != want {
			t.Errorf("the secret of host made-%s is %q, want %q", name, got, want)
		}
	}
	export := func() string {
		t.Helper()
		text, err := b.db.Export(ctx, confdb.ExportOptions{Version: "7.0", Hosts: []string{"h"}})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	open()
	b.load(secretPrototype)
	made("a", "canary a")
	text := export()
	if strings.Contains(text, "canary") || !strings.Contains(text, "plain") {
		t.Errorf("the export has the secret or lacks the value:\n%s", text)
	}
	if r, err := b.db.Import(ctx, "again", []byte(text), confdb.ImportOptions{}); err != nil || r.Changed() {
		t.Errorf("the export changes its own database: %v\n%s", err, r)
	}
	made("b", "canary b")
	b.load(strings.Replace(secretPrototype, "canary {#H}", "canary of {#H}", 1))
	made("c", "canary of c")
	if err := b.db.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(filepath.Join(dir, f.Name())); err != nil || bytes.Contains(text, []byte("canary")) {
			t.Errorf("%s holds a secret in the clear, or: %v", f.Name(), err)
		}
	}
	open()
	made("d", "canary of d")
}

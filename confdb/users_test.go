package confdb

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/model"
)

const secretExport = `{"zabbix_export":{"version":"6.0","groups":[{"uuid":"0123456789ab4def8123456789abcdef","name":"G"}],"hosts":[{"host":"h","name":"h",
"groups":[{"name":"G"}],"macros":[{"macro":"{$PASS}","type":"SECRET_TEXT","value":"canary-host"},{"macro":"{$OPEN}","value":"plain"}],"discovery_rules":[{"name":"R","type":"TRAP","key":"r","host_prototypes":[
{"host":"{#H}","name":"{#H}","group_links":[{"group":{"name":"G"}}],"macros":[{"macro":"{$MADE}","type":"SECRET_TEXT","value":"canary-made"}]}]}]}]}}`

// TestSecrets_sealed stores canaries in every place of secrets and looks for them in the files.
func TestSecrets_sealed(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	d := open(t, dir)
	if _, err := d.Import(ctx, "x.json", []byte(secretExport), ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := d.SetGlobalMacros(ctx, []model.Macro{{Name: "{$G}", Value: "canary-global", Secret: true}, {Name: "{$H}", Value: "plain"}}); err != nil {
		t.Fatal(err)
	}
	if err := d.PutAlertObjects(ctx, []model.AlertObject{{Kind: "media", Name: "mail", Body: []byte(`{"password":"canary-media"}`)}}, nil); err != nil {
		t.Fatal(err)
	}
	// An unchanged secret looks unchanged.
	before, err := d.Revision(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := d.Import(ctx, "x.json", []byte(secretExport), ImportOptions{}); err != nil || r.Changed() {
		t.Errorf("the second import changed something: %v %v", r, err)
	}
	if after, err := d.Revision(ctx); err != nil || after != before {
		t.Errorf("revision %d after %d, %v", after, before, err)
	}
	check := func(when string, d *DB) {
		t.Helper()
		h := hosts(t, d)["h"]
		if h == nil || len(h.Host.Macros) != 2 || h.Host.Macros[1].Value != "canary-host" && h.Host.Macros[0].Value != "canary-host" {
			t.Errorf("%s: the host is %+v", when, h)
		}
		global, err := d.GlobalMacros(ctx)
		if err != nil || len(global) != 2 || global[0].Value != "canary-global" {
			t.Errorf("%s: global macros %+v %v", when, global, err)
		}
		l, err := d.LoadAlerts(ctx, 0)
		if err != nil || len(l.Objects) != 1 || string(l.Objects[0].Body) != `{"password":"canary-media"}` {
			t.Errorf("%s: alert objects %v %v", when, l.Objects, err)
		}
	}
	check("as stored", d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	noCanary(t, dir)
	if info, err := os.Stat(filepath.Join(dir, SecretFileName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file: %v %v", info, err)
	}

	// What an earlier version stored in the clear is sealed at the next start.
	d = open(t, dir)
	for _, statement := range []string{
		`UPDATE hosts SET macros = '[{"n":"{$OPEN}","v":"plain"},{"n":"{$PASS}","v":"canary-host","s":true}]'`,
		`UPDATE global_macros SET value = 'canary-global' WHERE secret = 1`,
		`UPDATE rule_prototypes SET body = '{"macros":[{"macro":"{$MADE}","type":"SECRET_TEXT","value":"canary-made"}],"name":"{#H}"}'`,
		`UPDATE alert_objects SET body = '{"password":"canary-media"}'`,
	} {
		if _, err := d.sql.ExecContext(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = open(t, dir)
	check("after the start that sealed them", d)
	var clear int
	if err := d.sql.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM hosts WHERE macros LIKE '%canary%') + (SELECT count(*) FROM global_macros WHERE value LIKE '%canary%')
		+ (SELECT count(*) FROM alert_objects WHERE body LIKE '%canary%') + (SELECT count(*) FROM rule_prototypes WHERE body LIKE '%canary%')`).Scan(&clear); err != nil || clear != 0 {
		t.Errorf("%d secrets are in the clear, %v", clear, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	noCanary(t, dir)

	// Without the key the rest is served.
	if err := os.Remove(filepath.Join(dir, SecretFileName)); err != nil {
		t.Fatal(err)
	}
	d = open(t, dir)
	if h := hosts(t, d)["h"]; h == nil || strings.Contains(h.Host.Macros[1].Value+h.Host.Macros[0].Value, "canary") {
		t.Errorf("without the key: %+v", h)
	}
	if l, err := d.LoadAlerts(ctx, 0); err != nil || len(l.Objects) != 0 {
		t.Errorf("without the key: %+v %v", l.Objects, err)
	}
}

// noCanary looks for secrets in every file of a folder.
func noCanary(t *testing.T, dir string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("canary-")) {
			t.Errorf("%s holds a secret in the clear", f.Name())
		}
	}
}

// TestAccess_roundTrip stores people and reads them again.
func TestAccess_roundTrip(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	d := open(t, dir)
	u := model.User{Name: "ada", Role: model.Operator, Groups: []string{"Web"}, Password: "hash", CreatedAt: 5}
	g := model.UserGroup{Name: "Web", Grants: []model.Grant{{HostGroup: "Linux", Role: model.Editor}}}
	if err := d.PutUser(ctx, &u); err != nil || u.ID == 0 {
		t.Fatal(err)
	}
	if err := d.PutUser(ctx, &model.User{Name: "ADA"}); err == nil || !strings.Contains(err.Error(), "taken") {
		t.Errorf("a second ada: %v", err)
	}
	if err := d.PutUserGroup(ctx, g); err != nil {
		t.Fatal(err)
	}
	s := model.Session{Hash: [32]byte{1, 2}, User: u.ID, CreatedAt: 6, UsedAt: 7, Address: "192.0.2.1", Agent: "x"}
	token := model.Token{User: u.ID, Name: "t", Hash: [32]byte{3}, Role: model.Viewer, CreatedAt: 8, ExpiresAt: 9}
	if err := d.PutSession(ctx, s); err != nil {
		t.Fatal(err)
	}
	if err := d.PutToken(ctx, &token); err != nil {
		t.Fatal(err)
	}
	s.UsedAt, token.UsedAt = 70, 80
	if err := d.TouchAccess(ctx, []model.Session{s}, []model.Token{token}); err != nil {
		t.Fatal(err)
	}
	l, err := d.LoadAccess(ctx)
	if err != nil || len(l.Users) != 1 || l.Users[0].Name != "ada" || l.Users[0].Role != model.Operator || len(l.Users[0].Groups) != 1 || len(l.Groups) != 1 ||
		l.Groups[0].Grants[0] != g.Grants[0] || len(l.Sessions) != 1 || l.Sessions[0] != s || len(l.Tokens) != 1 || l.Tokens[0] != token {
		t.Errorf("read again: %+v %v", l, err)
	}
	if err := d.DeleteUser(ctx, u.ID); err != nil {
		t.Fatal(err)
	}
	if l, err = d.LoadAccess(ctx); err != nil || len(l.Users)+len(l.Sessions)+len(l.Tokens) != 0 {
		t.Errorf("after the user was deleted: %+v %v", l, err)
	}
}

func TestAudit_bounded(t *testing.T) {
	ctx := t.Context()
	d := open(t, t.TempDir())
	for i := range 2 * auditPrune {
		e := model.AuditEntry{At: 1, Actor: "ada", Via: "session", Action: "PUT /x", Object: "100% of x"}
		if i > 10 {
			e.At = auditAge + 2
		}
		if err := d.RecordAudit(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	list, err := d.Audit(ctx, model.AuditFilter{Limit: 1000})
	if err != nil || len(list) != 2*auditPrune-11 || list[0].ID <= list[1].ID {
		t.Errorf("%d entries are kept, %v", len(list), err)
	}
	f := func(filter model.AuditFilter, want int) {
		t.Helper()
		if list, err := d.Audit(ctx, filter); err != nil || len(list) != want {
			t.Errorf("%+v: %d entries, %v; want %d", filter, len(list), err, want)
		}
	}
	f(model.AuditFilter{Limit: 3}, 3)
	f(model.AuditFilter{Actor: "bob"}, 0)
	f(model.AuditFilter{Search: "0% of", Limit: 2}, 2)
	f(model.AuditFilter{Search: "1%x"}, 0)
	f(model.AuditFilter{Before: 13}, 1)
	f(model.AuditFilter{To: auditAge}, 0)
}

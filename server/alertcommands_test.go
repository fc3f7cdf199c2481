package server

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"tidemark/access"
	"tidemark/api"
	"tidemark/confdb"
	"tidemark/model"
)

// Many problems of a host have one remedy: it runs once in 50 s, and that of other hosts beside it.
func TestAlertCommands_pause(t *testing.T) {
	c := &alertCommands{}
	now := time.Unix(1_700_000_000, 0)
	f := func(host int, line string, after time.Duration, want bool) {
		t.Helper()
		if got := c.free(model.HostID(host), line, now.Add(after)); got != want {
			t.Errorf("%q on %d after %s may run: %v, want %v", line, host, after, got, want)
		}
	}
	f(1, "a", 0, true)
	f(1, "a", time.Second, false)
	f(1, "b", time.Second, true)
	f(2, "a", 30*time.Second, true)
	f(1, "a", 49*time.Second, false)
	f(1, "a", 50*time.Second, true)
	f(2, "a", 79*time.Second, false)
	if len(c.ran) != 2 {
		t.Errorf("%d commands are remembered, want 2", len(c.ran))
	}
}

// Editors of all hosts change alerting, but not which commands there are.
func TestAlertCommands_onlyAdministrators(t *testing.T) {
	r := run(t, t.TempDir())
	const media = `{"media":[{"name":"restart","command":{"line":"systemctl restart app"}}]}`
	f := func(role model.Role, body string, want int) {
		t.Helper()
		err := r.server.alerting().Apply(access.With(t.Context(), &access.Identity{Role: role, AllHosts: true}), []byte(body), false)
		status := 0
		var known *api.Error
		if errors.As(err, &known) {
			status = known.Status
		} else if err != nil {
			t.Error(err)
		}
		if status != want {
			t.Errorf("%s by role %v: %v, want %d", body, role, err, want)
		}
	}
	f(model.Editor, media, http.StatusForbidden)
	f(model.Administrator, media, 0)
	f(model.Editor, media, 0)
	f(model.Editor, strings.Replace(media, "systemctl", "service", 1), http.StatusForbidden)
	f(model.Editor, strings.Replace(media, `"name"`, `"sessions":2,"name"`, 1), http.StatusForbidden)
	f(model.Editor, `{"receivers":[{"name":"machine","media":[{"media":"restart","to":"host"}]}]}`, 0)
}

// With a standby that must have everything, a command is not run before that has the claim: after a takeover it would be run again.
func TestAlertCommands_standby(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Options{Data: t.TempDir(), HTTP: l, Synchronous: true, Alone: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	const file = `zabbix_export: {version: '7.0', host_groups: [{name: g}], hosts: [{host: db1, name: db1, groups: [{name: g}], interfaces: [{ip: 127.0.0.1, port: '1', interface_ref: if1}]}]}`
	if _, err := s.db.Import(t.Context(), "x.yaml", []byte(file), confdb.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.cache.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	h, ok := s.cache.Snapshot().Host("db1")
	if !ok {
		t.Fatal("the host is not there")
	}
	_, err = (&alertCommands{server: s}).RunCommand(t.Context(), h.ID, "true", "true")
	if err == nil || !strings.Contains(err.Error(), "the command was not run") || !strings.Contains(err.Error(), "no standby confirmed") {
		t.Errorf("without a standby: %v", err)
	}
}

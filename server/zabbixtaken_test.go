package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tidemark/confdb"
	"tidemark/zabbixdb"
)

// zabbixLinux is a template of Zabbix with the name of one of ours, and a host with it.
const zabbixLinux = `{"zabbix_export":{"version":"6.0","templates":[{"uuid":"f8f7908280354f2abeed07dc788c3747","template":"Linux by Zabbix agent","name":"Linux by Zabbix agent",
"groups":[{"name":"Templates/Operating systems"}],"macros":[{"macro":"{$CPU.UTIL.CRIT}","value":"90"}],
"items":[{"uuid":"0b1f4c1ad2c04b3e9c5a27b3f35a9e11","name":"Zombies","type":"ZABBIX_ACTIVE","key":"proc.num[,,zomb]","triggers":[
{"uuid":"0b1f4c1ad2c04b3e9c5a27b3f35a9e12","expression":"last(/Linux by Zabbix agent/proc.num[,,zomb])>{$CPU.UTIL.CRIT}","name":"Many zombies"}]}]}],
"hosts":[{"host":"web1","name":"web1","groups":[{"name":"Linux servers"}],"templates":[{"name":"Linux by Zabbix agent"}]}]}}`

// A template of Zabbix that has the name of one of ours replaces it at once, whole, and starts of the server leave it alone.
func TestImport_keptOverStart(t *testing.T) {
	dir := t.TempDir()
	contents := func(r *running) string {
		snapshot := r.server.cache.Snapshot()
		h, ok := snapshot.Host("web1")
		if !ok {
			t.Fatal("the host is not there")
		}
		text := ""
		for _, i := range snapshot.Items(h.ID) {
			text += fmt.Sprintf("item %d %s\n", i.ID, i.Key)
		}
		for _, trigger := range snapshot.TriggersOf(h.ID) {
			text += fmt.Sprintf("trigger %d %s\n", trigger.ID, trigger.Name)
		}
		if strings.Count(text, "item ") != 1 || strings.Count(text, "trigger ") != 1 {
			t.Errorf("the host has other things than those of Zabbix's template:\n%s", text)
		}
		return text
	}
	r := run(t, dir)
	r.importText(zabbixLinux)
	want := contents(r)
	for range 2 {
		r.stop()
		r = run(t, dir)
		if got := contents(r); got != want {
			t.Errorf("after a start the host has %s, want %s", got, want)
		}
	}
}

// locked has Zabbix's administrator with the default password, which is not taken.
func locked() *zabbixdb.Settings {
	return &zabbixdb.Settings{
		Proxies: []zabbixdb.Proxy{}, Hosts: []zabbixdb.HostTLS{}, UserGroups: []zabbixdb.UserGroup{}, Remarks: []zabbixdb.Remark{},
		Users: []zabbixdb.User{{Name: "Admin", Role: "administrator", AllHosts: true, Groups: []string{}}},
	}
}

// says finds the commands that let Admin in.
func says(t *testing.T, report *confdb.Report, target string) {
	t.Helper()
	want := "tidemark user passwd Admin " + target + " && tidemark user enable Admin " + target
	if !slices.ContainsFunc(report.Remarks, func(m confdb.Remark) bool { return m.Path == "user Admin" && strings.Contains(m.Reason, want) }) {
		t.Errorf("the report does not say %q: %+v", want, report.Remarks)
	}
}

// An imported administrator who cannot sign in locks nobody out: this machine stays administrator until one can.
func TestImportSettings_lockedAdministrator(t *testing.T) {
	r := run(t, t.TempDir())
	body, err := json.Marshal(locked())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		report := &confdb.Report{}
		if err := json.Unmarshal([]byte(r.call("POST", "/api/import/zabbix", string(body), http.StatusOK)), report); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			says(t, report, "--http "+strings.TrimPrefix(r.http, "http://"))
		}
	}
	if r.server.HasAdministrator() {
		t.Error("an administrator without a password counts as one who can sign in")
	}
	var list struct {
		Users []struct{ ID, Name string }
	}
	r.get("/api/users", &list)
	if len(list.Users) != 1 || list.Users[0].Name != "Admin" {
		t.Fatalf("users %+v", list.Users)
	}
	path := "/api/users/" + list.Users[0].ID
	r.call("PUT", path, `{"name":"Admin","role":"administrator","all_hosts":true,"disabled":true,"password":"long enough 1"}`, http.StatusOK)
	r.call("PUT", path, `{"name":"Admin","role":"administrator","all_hosts":true,"disabled":false}`, http.StatusOK)
	r.call("GET", "/api/users", "", http.StatusUnauthorized)
}

func TestImportSettingsOffline_lockedAdministrator(t *testing.T) {
	data := t.TempDir()
	report, err := ImportSettingsOffline(context.Background(), data, locked())
	if err != nil {
		t.Fatal(err)
	}
	says(t, report, "--data "+data)
	if r := run(t, data); r.server.HasAdministrator() {
		t.Error("an administrator without a password counts as one who can sign in")
	}
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{"Admin": "Admin", "10.0.0.1:8420": "10.0.0.1:8420", "": "''", "it's me": `'it'\''s me'`, "-x": "'-x'", "[::1]:1": "'[::1]:1'", "a;b": "'a;b'"} {
		if got := shellWord(in); got != want {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
}

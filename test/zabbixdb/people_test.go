package zabbixdb

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"tidemark/confdb"
)

// settings is what is in a data folder besides hosts and templates, without times.
type settings struct {
	Alerting map[string]json.RawMessage
	Groups   map[string]string
	Users    map[string]string
	TLS      []string
	Proxies  []string
}

func readSettings(t *testing.T, data string) *settings {
	t.Helper()
	ctx := context.Background()
	db, err := confdb.Open(ctx, data, confdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := &settings{Alerting: map[string]json.RawMessage{}, Groups: map[string]string{}, Users: map[string]string{}}
	alerts, err := db.LoadAlerts(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range alerts.Objects {
		if o.Kind == "settings" { // has the time
			o.Body = bytes.ReplaceAll(o.Body, o.Body[bytes.Index(o.Body, []byte("since"))+7:bytes.IndexByte(o.Body, '}')], []byte("1"))
		}
		s.Alerting[o.Kind+" "+o.Name] = o.Body
	}
	people, err := db.LoadAccess(ctx)
	if err != nil {
		t.Fatal(err)
	}
	text := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	for _, u := range people.Users {
		s.Users[u.Name] = text([]any{u.Role.String(), u.AllHosts, u.Disabled, u.Groups, u.Password})
	}
	for _, g := range people.Groups {
		var grants []string
		for _, grant := range g.Grants {
			grants = append(grants, grant.HostGroup+"="+grant.Role.String())
		}
		s.Groups[g.Name] = text(grants)
	}
	keys, err := db.HostTLS(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		s.TLS = append(s.TLS, text([]any{k.HostID.Proxy() != 0, k.Connect, k.Accept, k.Identity, []byte(k.Key)}))
	}
	proxies, err := db.Proxies(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range proxies {
		s.Proxies = append(s.Proxies, text([]any{p.Name, p.Description, p.Address, p.HostCount}))
	}
	return s
}

// hasSettings compares what is in the data folder with testdata/settings.json, which says for each row of people.sql what it means.
func hasSettings(t *testing.T, data string, own bool) {
	t.Helper()
	s := readSettings(t, data)
	if own { // of Debian's package
		for _, name := range []string{"Admin"} {
			if s.Users[name] != `["administrator",true,true,null,""]` {
				t.Errorf("user %s is %s", name, s.Users[name])
			}
			delete(s.Users, name)
		}
		for name := range s.Groups {
			if name == "Zabbix administrators" || name == "Guests" || name == "Disabled" || name == "Enabled debug mode" || name == "No access to the frontend" {
				delete(s.Groups, name)
			}
		}
	}
	got, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const golden = "testdata/settings.json"
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the settings are other than %s:\n%s", golden, got)
	}
}

// hasRemarks compares with testdata/remarks.txt.
func (r *report) hasRemarks(t *testing.T) {
	t.Helper()
	var got []string
	for _, m := range r.Remarks {
		line := m.Path + ": " + m.Reason
		// Of hosts.sql, and of Debian's package.
		if !strings.Contains(line, "IPMI") && m.Path != "user Admin" && m.Path != "action Report problems to Zabbix administrators" {
			got = append(got, line)
		}
	}
	text := strings.Join(got, "\n") + "\n"
	const golden = "testdata/remarks.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("the remarks are other than %s:\n%s", golden, text)
	}
}

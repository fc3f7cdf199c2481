package zabbixdb

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"tidemark/confdb"
	"tidemark/model"
	"tidemark/test/launch"
)

var update = flag.Bool("update", false, "rewrite the golden export")

// report is what import zabbix --json prints.
type report struct {
	Version string
	Counts  []confdb.Count
	Remarks []confdb.Remark
	Left    []struct {
		Kind   string
		Count  int
		Reason string
	}
}

func importZabbix(t *testing.T, bin, dsn, data string) *report {
	t.Helper()
	var out, errs bytes.Buffer
	c := exec.Command(bin, "import", "zabbix", "--dsn", dsn, "--data", data, "--json")
	c.Stdout, c.Stderr, c.Env = &out, &errs, append(os.Environ(), "TZ=UTC")
	if err := c.Run(); err != nil {
		t.Fatalf("import zabbix: %v\n%s", err, errs.String())
	}
	r := &report{}
	if err := json.Unmarshal(out.Bytes(), r); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return r
}

func (r *report) count(kind string) confdb.Count {
	for _, c := range r.Counts {
		if c.Kind == kind {
			return c
		}
	}
	return confdb.Count{}
}

func (r *report) left(kind string) int {
	n := 0
	for _, l := range r.Left {
		if l.Kind == kind {
			n += l.Count
		}
	}
	return n
}

// packaged is what the tables of Debian's package hold: SELECT count(*) … WHERE templateid IS NULL.
var packaged = map[string]int{
	"templates": 325, "hosts": 1, "items": 5837, "discovery rules": 1397, "item prototypes": 6014, "triggers": 2541, "trigger prototypes": 3010,
	"host prototypes": 22, "value maps": 1056, "graphs": 598, "graph prototypes": 770, "global macros": 1, "regular expressions": 5,
}

// Hosts with one of everything on both databases, on PostgreSQL besides what Debian's Zabbix 6.0 comes with.
func TestImport(t *testing.T) {
	t.Parallel()
	bin := launch.Binary(t)
	for kind, leg := range map[string]struct {
		begin func(*testing.T) *database
		more  map[string]int
	}{"postgresql": {postgres, packaged}, "mariadb": {mariadb, nil}} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := leg.begin(t)
			for _, name := range []string{"hosts", "people"} {
				rows, err := os.Open("testdata/" + name + ".sql")
				if err != nil {
					t.Fatal(err)
				}
				defer rows.Close()
				d.exec(t, rows)
			}
			data := t.TempDir()
			first := importZabbix(t, bin, d.dsn, data)
			first.isWhole(t, "6.0", leg.more)
			hasGolden(t, data, "")
			hasSettings(t, data, leg.more != nil)
			hasEmptyGroups(t, data)
			again := importZabbix(t, bin, d.dsn, data)
			for i, c := range again.Counts {
				if c.Created+c.Updated != 0 || c.Unchanged+c.Refused == 0 || c.Refused != 0 && c.Kind != "receivers" && c.Kind != "actions" {
					t.Errorf("a second import found %+v", again.Counts[i])
				}
			}
			if leg.more == nil { // What changes there changes here; it takes long with all templates.
				d.exec(t, strings.NewReader("UPDATE items SET delay = '5m' WHERE itemid = 9900003;"))
				if c := importZabbix(t, bin, d.dsn, data).count("items"); c.Updated != 1 || c.Created != 0 {
					t.Errorf("after a change of one item the import found %+v", c)
				}
			}
			d.exec(t, strings.NewReader("UPDATE dbversion SET mandatory = 5040000;"))
			out, err := exec.Command(bin, "import", "zabbix", "--dsn", d.dsn, "--data", data).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "5.4") {
				t.Errorf("a database of Zabbix 5.4 gave %v: %s", err, out)
			}
		})
	}
}

// A database as Zabbix 7.0 has it, made of one of 6.0 by what the versions between have changed, gives the same configuration; and what only 7.0 has is taken.
func TestImport_70(t *testing.T) {
	t.Parallel()
	bin, d, data := launch.Binary(t), emptyPostgres(t), t.TempDir()
	run := func(name string) {
		t.Helper()
		rows, err := os.Open("testdata/" + name + ".sql")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		d.exec(t, rows)
	}
	for _, name := range []string{"hosts", "people", "to70"} {
		run(name)
	}
	importZabbix(t, bin, d.dsn, data).isWhole(t, "7.0", nil)
	hasGolden(t, data, "          timeout: '3s'\n") // which 7.0 says, and 6.0 means
	hasSettings(t, data, false)
	run("only70")
	r := importZabbix(t, bin, d.dsn, data)
	for kind, want := range map[string]int{"hosts": 1, "items": 3, "discovery rules": 1, "users": 1, "proxies": 2} {
		if c := r.count(kind); c.Created != want || c.Updated+c.Refused != 0 {
			t.Errorf("%s: %+v, expected %d created", kind, c, want)
		}
	}
	for kind, want := range map[string]int{"proxy groups of hosts": 1, "second factors of user groups": 1} {
		if n := r.left(kind); n != want {
			t.Errorf("%d %s were left, expected %d: %+v", n, kind, want, r.Left)
		}
	}
	if got := exportOf(t, data, "grouped-1"); !bytes.Equal(got, golden(t, "testdata/only70.yaml", got)) {
		t.Errorf("the host of 7.0 is other than testdata/only70.yaml:\n%s", got)
	}
	s := readSettings(t, data)
	if s.Users["directory"] != `["viewer",false,true,null,""]` {
		t.Errorf("the user without a role is %s", s.Users["directory"])
	}
	if proxies := strings.Join(s.Proxies, " "); !strings.Contains(proxies, `["branch-4","","",1]`) || !strings.Contains(proxies, `["branch-3","","",0]`) {
		t.Errorf("the proxies are %s", proxies)
	}
}

// golden reads a file, after writing it with -update.
func golden(t *testing.T, name string, got []byte) []byte {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// exportOf is the configuration of a host in a data folder.
func exportOf(t *testing.T, data, host string) []byte {
	t.Helper()
	db, err := confdb.Open(t.Context(), data, confdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	got, err := db.Export(t.Context(), confdb.ExportOptions{Version: "7.0", Hosts: []string{host}})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// hasEmptyGroups looks for the groups of testdata/people.sql in which no host is, and for one that only templates would make one of hosts.
func hasEmptyGroups(t *testing.T, data string) {
	t.Helper()
	db, err := confdb.Open(t.Context(), data, confdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	list, err := db.HostGroups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, g := range list {
		found[g.Name] = true
	}
	for _, name := range []string{"Databases", "Web", "Web/Shop", "Databases/PostgreSQL"} {
		if !found[name] {
			t.Errorf("the host group %s was not taken", name)
		}
	}
	if found["Templates/Applications"] {
		t.Error("a group that has templates only became a host group")
	}
}

// isWhole compares with what testdata/hosts.sql and more hold.
func (r *report) isWhole(t *testing.T, version string, more map[string]int) {
	t.Helper()
	if r.Version != version {
		t.Errorf("the version is %q", r.Version)
	}
	for kind, want := range map[string]int{
		"templates": 2, "hosts": 2, "items": 6, "discovery rules": 1, "item prototypes": 1, "triggers": 4, "web scenarios": 2, "trigger prototypes": 1, "host prototypes": 0,
		"value maps": 1, "graphs": 0, "graph prototypes": 0, "global macros": 2, "regular expressions": 0,
	} {
		want += more[kind]
		if c := r.count(kind); c.Created != want || c.Updated+c.Unchanged+c.Refused != 0 {
			t.Errorf("%s: %+v, expected %d created", kind, c, want)
		}
	}
	for kind, want := range map[string]int{
		"items made by discovery": 1, "hosts made by discovery": 1, "macros": 1, "inherited items that are off on their host": 1,
		"passive proxies": 0, "web scenarios": 0, "API tokens": 1, "roles that hide single pages": 1,
		"operations that run commands": 1, "maintenances": 1, "tag filters of user groups": 0,
	} {
		if n := r.left(kind); n != want {
			t.Errorf("%d %s were left, expected %d: %+v", n, kind, want, r.Left)
		}
	}
	r.hasRemarks(t)
}

// hasGolden compares what is in the data folder with testdata/hosts.yaml, which says for each row of hosts.sql what it means.
// without is a line more that is expected.
func hasGolden(t *testing.T, data, without string) {
	t.Helper()
	ctx := context.Background()
	db, err := confdb.Open(ctx, data, confdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	got, err := db.Export(ctx, confdb.ExportOptions{Version: "6.0", Hosts: []string{"db-1", "web-1"}, Templates: []string{"Base", "Derived"}})
	if err != nil {
		t.Fatal(err)
	}
	if without != "" {
		got = bytes.Replace(got, []byte(without), nil, 1)
	}
	if !bytes.Equal(got, golden(t, "testdata/hosts.yaml", got)) {
		t.Errorf("the configuration is other than testdata/hosts.yaml:\n%s", got)
	}
	macros, err := db.GlobalMacros(ctx)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, m := range macros {
		values[m.Name] = m.Value
	}
	if values["{$SITE}"] != "Berlin" || values["{$TOKEN}"] != "hidden" {
		t.Errorf("the global macros are %v", values)
	}
	secret := "none"
	err = db.HostConfigs(ctx, []model.HostID{1, 2, 3, 4, 5}, func(h *model.HostConfig) error {
		for _, m := range h.Host.Macros {
			if m.Name == "{$PASSWORD}" {
				secret = m.Value
			}
		}
		return nil
	})
	if err != nil || secret != "geheim" {
		t.Errorf("the secret macro is %q, %v", secret, err)
	}
}

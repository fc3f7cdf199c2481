package confdb

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const shippedUUID, foreignUUID = "e210e7ad567240368b5729d9a7c52d1c", "f8f7908280354f2abeed07dc788c3747"

// cpuTemplate has two items, of which key is one, and a trigger on that which reads a macro.
func cpuTemplate(uuid, key, macro string) string {
	return fmt.Sprintf(`zabbix_export:
  version: '6.0'
  groups:
    - uuid: 745ae494f2cc48e19fa3c7bf0e16c19a
      name: Templates/Operating systems
  templates:
    - uuid: %s
      template: Linux
      name: Linux
      groups:
        - name: Templates/Operating systems
      macros:
        - macro: '%s'
          value: '90'
      items:
        - uuid: %s
          name: Agent answers
          type: ZABBIX_ACTIVE
          key: agent.ping
        - uuid: %s
          name: CPU
          type: ZABBIX_ACTIVE
          key: %s
          value_type: FLOAT
          triggers:
            - uuid: %s
              expression: 'last(/Linux/%s)>%s'
              name: %s is high
`, uuid, macro, "a"+uuid[1:], "b"+uuid[1:], key, "c"+uuid[1:], key, macro, key)
}

const linuxHost = `{"zabbix_export":{"version":"6.0","hosts":[{"host":"web1","name":"web1","groups":[{"name":"Linux servers"}],"templates":[{"name":"Linux"}]}]}}`

func builtins(t *testing.T, d *DB, text string) *Report {
	t.Helper()
	reports, err := d.ImportBuiltin(context.Background(), fstest.MapFS{"linux.yaml": {Data: []byte(text)}})
	if err != nil || len(reports) != 1 {
		t.Fatalf("%d reports, %v", len(reports), err)
	}
	return reports[0]
}

func importExport(t *testing.T, d *DB, text string) *Report {
	t.Helper()
	r, err := d.Import(context.Background(), "file", []byte(text), ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A template of Zabbix with the name of one that comes with the program replaces it whole, and starts leave it alone; items of a host keep their ids.
func TestImport_replacesBuiltin(t *testing.T) {
	d := open(t, t.TempDir())
	builtins(t, d, cpuTemplate(shippedUUID, "system.cpu.load", "{$LOAD.MAX}"))
	importExport(t, d, linuxHost)
	before := hosts(t, d)["web1"]
	foreign := cpuTemplate(foreignUUID, "system.cpu.util", "{$UTIL.MAX}")
	r := importExport(t, d, foreign)
	if len(r.Remarks) != 1 || r.Remarks[0].Path != "template Linux" || r.Remarks[0].Refused || !strings.Contains(r.Remarks[0].Reason, "replaces the template of this name that comes with the program") {
		t.Errorf("remarks %+v", r.Remarks)
	}
	whole := dump(t, d)
	if strings.Contains(whole, "LOAD.MAX") || strings.Contains(whole, "cpu.load") || !strings.Contains(whole, "cpu.util") {
		t.Errorf("something of the template that was replaced is there still:\n%s", whole)
	}
	now := hosts(t, d)["web1"]
	if len(now.Items) != 2 || len(now.Triggers) != 1 || now.Items[0].ID != before.Items[0].ID {
		t.Errorf("items %v, before %v", now.Items, before.Items)
	}
	for _, shipped := range []string{cpuTemplate(shippedUUID, "system.cpu.load", "{$LOAD.MAX}"), cpuTemplate(shippedUUID, "system.cpu.newer", "{$LOAD.MAX}")} {
		r := builtins(t, d, shipped)
		if r.Changed() || !slices.Equal(r.Kept, []string{"template Linux was imported or made here under this name"}) {
			t.Errorf("a start changed it: %v %s", r.Kept, r)
		}
	}
	if again := importExport(t, d, foreign); again.Changed() || len(again.Remarks) > 0 || dump(t, d) != whole {
		t.Errorf("after two starts another import gave %s\n%s\nwant\n%s", again, dump(t, d), whole)
	}
}

// Newer versions bring a template up to date until somebody changes it.
func TestImportBuiltin_changedHere(t *testing.T) {
	d := open(t, t.TempDir())
	builtins(t, d, cpuTemplate(shippedUUID, "system.cpu.load", "{$LOAD.MAX}"))
	importExport(t, d, linuxHost)
	if r := builtins(t, d, cpuTemplate(shippedUUID, "system.cpu.newer", "{$LOAD.MAX}")); !r.Changed() || len(r.Kept) > 0 {
		t.Errorf("a newer version gave %v %s", r.Kept, r)
	}
	importExport(t, d, cpuTemplate(shippedUUID, "system.cpu.newer", "{$LOAD.MAX}")) // the same again is no change
	if r := builtins(t, d, cpuTemplate(shippedUUID, "system.cpu.newest", "{$LOAD.MAX}")); !r.Changed() || len(r.Kept) > 0 {
		t.Errorf("after an import that changed nothing a newer version gave %v %s", r.Kept, r)
	}
	edited := strings.Replace(cpuTemplate(shippedUUID, "system.cpu.newest", "{$LOAD.MAX}"), "value: '90'", "value: '70'", 1)
	if _, err := d.Import(context.Background(), "page", []byte(edited), ImportOptions{Exact: true, Strict: true, Only: OwnerName{"template", "Linux"}}); err != nil {
		t.Fatal(err)
	}
	want := dump(t, d)
	r := builtins(t, d, cpuTemplate(shippedUUID, "system.cpu.load", "{$LOAD.MAX}"))
	if r.Changed() || !slices.Equal(r.Kept, []string{"template Linux was changed here"}) || dump(t, d) != want {
		t.Errorf("a start undid a change of somebody: %v %s", r.Kept, r)
	}
	if err := d.DeleteTemplate(context.Background(), "Linux"); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if r := builtins(t, d, cpuTemplate(shippedUUID, "system.cpu.load", "{$LOAD.MAX}")); len(r.Kept) > 0 || r.Changed() != (i == 0) {
			t.Errorf("start %d after it was deleted gave %v %s", i, r.Kept, r)
		}
	}
}

package confdb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// large is a file that is planned on a copy: its spaces make it so.
func large(text string) []byte { return []byte(text + strings.Repeat(" ", maxPlanInPlaceBytes)) }

const plannedHosts = `{"zabbix_export":{"version":"7.0","hosts":[
{"host":"h","name":"Host","groups":[{"name":"B"}],"items":[{"name":"One","key":"one","type":"TRAP","delay":"0"}]},
{"host":"new","groups":[{"name":"C"}],"items":[{"name":"Two","key":"two","type":"TRAP","delay":"0",
"triggers":[{"name":"X","expression":"last(/new/none)>1"}]}]}]}}`

// TestPlan_copy: while a large plan is made changes go on and a second one is refused; it says what the import then does, and uses no item ids up.
func TestPlan_copy(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	d := open(t, dir)
	importFile(t, d, "template-6.0.yaml")
	importFile(t, d, "host-7.0.json")
	importText(t, d, documentHost)
	before, ids := dump(t, d), d.ids.(*counter).last
	asked := false
	plan, err := d.Import(ctx, "x", large(plannedHosts), ImportOptions{Exact: true, Plan: true, Known: func(string, string) bool {
		if asked {
			return false
		}
		asked = true
		if _, err := d.Import(ctx, "second", large(plannedHosts), ImportOptions{Plan: true}); !errors.Is(err, ErrPlanning) {
			t.Errorf("a second plan beside the first: %v", err)
		}
		// This would wait for ever if the plan held the database.
		if _, _, err := d.RegisterHost(ctx, "meanwhile", ""); err != nil {
			t.Error(err)
		}
		return false
	}})
	if err != nil || !asked {
		t.Fatal(err, asked)
	}
	if left, err := filepath.Glob(filepath.Join(dir, planPattern)); err != nil || len(left) > 0 {
		t.Errorf("the plan left %v %v", left, err)
	}
	if host := hosts(t, d)["meanwhile"]; host == nil {
		t.Error("the change beside the plan is lost")
	}
	if err := d.DeleteHost(ctx, hosts(t, d)["meanwhile"].Host.ID); err != nil {
		t.Fatal(err)
	}
	if on := true; d.postgres == nil {
		if err := d.sql.QueryRowContext(ctx, "PRAGMA foreign_keys").Scan(&on); err != nil || !on {
			t.Error("references are not checked after a plan", err)
		}
	}
	if after := dump(t, d); after != before || d.ids.(*counter).last != ids {
		t.Errorf("the plan changed the database to\n%s\nand the ids from %d to %d", after, ids, d.ids.(*counter).last)
	}
	done, err := d.Import(ctx, "x", large(plannedHosts), ImportOptions{Exact: true, Known: func(string, string) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	plan.Plan = false
	if !reflect.DeepEqual(plan, done) {
		t.Errorf("planned\n%s\ndone\n%s", plan, done)
	}
}

// TestPlan_leftovers: a copy that a crash left goes at the next start.
func TestPlan_leftovers(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "plan-1")
	if err := os.Mkdir(left, 0o700); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy is still there: %v", err)
	}
}

// TestPlan_tooMany: more hosts than a plan takes are refused before the database is asked.
func TestPlan_tooMany(t *testing.T) {
	d := open(t, t.TempDir())
	var b strings.Builder
	b.WriteString(`{"zabbix_export":{"version":"7.0","hosts":[`)
	for i := range maxPlanOwners + 1 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"host":"h` + strconv.Itoa(i) + `","groups":[{"name":"A"}]}`)
	}
	b.WriteString("]}}")
	_, err := d.Import(context.Background(), "plan", []byte(b.String()), ImportOptions{Plan: true})
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "at most 50000") {
		t.Errorf("too many hosts: %v", err)
	}
}

// TestImport_malformed: a file that is no export is invalid, and the error names its line.
func TestImport_malformed(t *testing.T) {
	d := open(t, t.TempDir())
	for text, want := range map[string]string{
		"a: [1, 2\nb: 3\n": "line 2", "zabbix_export:\n  version: '7.0'\n\thosts:\n": "line 3", "{\n\"a\": 1,\n": "line 2", "{\"zabbix_export\":\n{\"version\":\"9.0\"}}": "line 2",
		"? [a, b]\n: 1\n": "line 1", "": "empty", "<a/>": "XML", "{}": "zabbix_export",
	} {
		_, err := d.Import(context.Background(), "plan", []byte(text), ImportOptions{Plan: true})
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want ErrInvalid with %q", text, err, want)
		}
	}
}

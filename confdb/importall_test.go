package confdb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestImportAll takes several files or none of them.
func TestImportAll(t *testing.T) {
	d, ctx := open(t, t.TempDir()), context.Background()
	file := func(host, items string, create bool) File {
		text := fmt.Sprintf(`{"zabbix_export":{"version":"7.0","hosts":[{"host":%q,"name":%q,"groups":[{"name":"G"}],"items":[%s]}]}}`, host, host, items)
		o := ImportOptions{Exact: true, Create: create, Only: OwnerName{Kind: "host"}}
		if !create {
			o.Only.Name = host
		}
		return File{Name: "host " + host, Src: []byte(text), Options: o}
	}
	const good, bad = `{"name":"A","key":"a","type":"TRAP","value_type":"FLOAT"}`, `{"name":"B","key":"b[","type":"TRAP","value_type":"FLOAT"}`
	reports, err := d.ImportAll(ctx, []File{file("one", good, true), file("two", good, true)})
	if err != nil || len(reports) != 2 || reports[1].Owner != "two" {
		t.Fatalf("two new hosts: %v, %d reports", err, len(reports))
	}
	if h := hosts(t, d); len(h["one"].Items) != 1 || len(h["two"].Items) != 1 {
		t.Fatalf("items of the hosts: %v", h)
	}
	for name, second := range map[string]File{
		"an item with a key that is none": file("two", bad, false),
		"a host that is there":            file("two", good, true),
	} {
		_, err := d.ImportAll(ctx, []File{file("one", "", false), second})
		var refused *RefusedError
		if !errors.As(err, &refused) || !strings.Contains(refused.Report.File, "two") {
			t.Errorf("%s: %v, want a refusal of two", name, err)
		}
		if h := hosts(t, d); len(h["one"].Items) != 1 {
			t.Errorf("%s: the first host was changed", name)
		}
	}
	if _, err := d.ImportAll(ctx, []File{file("one", "", false), {Name: "none", Src: []byte("{")}}); err == nil {
		t.Error("a file that cannot be read is taken")
	}
	if h := hosts(t, d); len(h["one"].Items) != 1 {
		t.Error("the first host was changed by a call with a file that cannot be read")
	}
}

package confdb

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestHostGroups_changed renames a host group and deletes it, which its hosts see, and refuses what would leave a host without a group.
func TestHostGroups_changed(t *testing.T) {
	d, ctx := open(t, t.TempDir()), context.Background()
	const two = `{"zabbix_export":{"version":"7.0","host_groups":[{"name":"A"},{"name":"B"},{"name":"Made"}],"hosts":[
		{"host":"h","name":"h","groups":[{"name":"A"},{"name":"B"}],"discovery_rules":[{"name":"R","type":"TRAP","key":"r","host_prototypes":[
			{"host":"{#H}","name":"{#H}","group_links":[{"group":{"name":"Made"}}]}]}]}]}}`
	if r, err := d.Import(ctx, "two.json", []byte(two), ImportOptions{}); err != nil || len(r.Remarks) > 0 {
		t.Fatal(r, err)
	}
	id := func(name string) uint64 {
		t.Helper()
		list, err := d.HostGroups(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range list {
			if g.Name == name {
				return g.ID
			}
		}
		t.Fatalf("no group %s in %v", name, list)
		return 0
	}
	groups := func(want string) {
		t.Helper()
		if got := strings.Join(hosts(t, d)["h"].Host.Groups, " "); got != want {
			t.Errorf("groups of the host: %s, want %s", got, want)
		}
	}
	refused := func(err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	if err := d.RenameHostGroups(ctx, GroupName{id("A"), "C"}); err != nil {
		t.Fatal(err)
	}
	groups("B C")
	refused(d.RenameHostGroups(ctx, GroupName{id("C"), "B"}), ErrInvalid)
	refused(d.RenameHostGroups(ctx, GroupName{id("C"), ""}), ErrInvalid)
	refused(d.RenameHostGroups(ctx, GroupName{id("C"), strings.Repeat("x", maxGroupNameBytes+1)}), ErrInvalid)
	refused(d.RenameHostGroups(ctx, GroupName{9999, "D"}), ErrNotFound)
	refused(d.RenameHostGroups(ctx, GroupName{id("Made"), "D"}), ErrInvalid)
	refused(d.DeleteHostGroups(ctx, id("Made")), ErrInvalid)
	refused(d.DeleteHostGroups(ctx, 9999), ErrNotFound)
	if err := d.DeleteHostGroups(ctx, id("C")); err != nil {
		t.Fatal(err)
	}
	groups("B")
	refused(d.DeleteHostGroups(ctx, id("B")), ErrInvalid)
	groups("B")
}

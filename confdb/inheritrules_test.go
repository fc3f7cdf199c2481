package confdb

import (
	"context"
	"testing"
)

// TestEnsureRules stands for a database of a version without items of rules.
func TestEnsureRules(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	importText(t, d, discovery)
	before := hosts(t, d)["h"]
	if len(before.Rules) != 1 || before.Rules[0].Key != "r" {
		t.Fatalf("rules %+v", before.Rules)
	}
	for _, query := range []string{"DELETE FROM rule_items", "UPDATE meta SET value = 0 WHERE name = 'rules_inherited'"} {
		if _, err := d.sql.ExecContext(ctx, query); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time there is nothing to do
		if err := d.EnsureRules(ctx); err != nil {
			t.Fatal(err)
		}
		after := hosts(t, d)["h"]
		if len(after.Rules) != 1 || after.Rules[0].ItemID <= before.Rules[0].ItemID || after.Host.Revision != before.Host.Revision+1 {
			t.Errorf("rules %+v at revision %d", after.Rules, after.Host.Revision)
		}
	}
}

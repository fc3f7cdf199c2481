package confdb

import (
	"context"
	"testing"

	"tidemark/model"
)

// TestKeepRuleValues keeps the newest value of a rule until it, or a newer one, was worked on.
func TestKeepRuleValues(t *testing.T) {
	db := open(t, t.TempDir())
	ctx := context.Background()
	const file = `
zabbix_export:
  version: '6.0'
  groups: [{name: G}]
  hosts:
    - {host: h, name: h, groups: [{name: G}], discovery_rules: [{name: r, key: r, type: TRAP}]}
`
	if _, err := db.Import(ctx, "test", []byte(file), ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	rules, err := db.DiscoveryRules(ctx, 0)
	if err != nil || len(rules) != 1 {
		t.Fatalf("%v, %v", rules, err)
	}
	id := rules[0].ItemID
	keep := func(at int64, text string) {
		t.Helper()
		if err := db.KeepRuleValues(ctx, []model.RuleValue{{Item: id, Order: at, Text: []byte(text)}, {Item: 999_999, Order: at, Text: []byte("of no rule")}}); err != nil {
			t.Fatal(err)
		}
	}
	ended := func(at int64) {
		t.Helper()
		if err := db.RuleFailed(ctx, id, at, "no"); err != nil {
			t.Fatal(err)
		}
	}
	want := func(text string, newest int64) {
		t.Helper()
		got := ""
		at, err := db.KeptRuleValues(ctx, func(v model.RuleValue) { got += string(v.Text) })
		if err != nil || got != text || at != newest {
			t.Errorf("kept is %q, the newest is of %d, %v; want %q, %d", got, at, err, text, newest)
		}
	}
	want("", 0)
	keep(10, "a\x00\xff")
	want("a\x00\xff", 10)
	keep(30, "c")
	keep(20, "b")
	want("c", 30)
	ended(20)
	want("c", 30)
	ended(30)
	want("", 30)
	keep(30, "c")
	want("", 30)
	ended(50)
	keep(40, "d")
	want("", 50)
}

package confcache

import (
	"strings"
	"testing"

	"tidemark/expr"
	"tidemark/internal/pcre"
	"tidemark/model"
)

func TestRegexps_inExpression(t *testing.T) {
	r := compileRegexps([]model.GlobalRegexp{
		{Name: "Errors", Expressions: []model.GlobalExpression{{Expression: `a"b\d`, Type: model.ResultTrue, CaseSensitive: true}}},
		{Name: "Windows service startup states for discovery", Expressions: []model.GlobalExpression{{Expression: "mine", Type: model.Included}}},
	})
	f := func(in, want string) {
		t.Helper()
		if got := r.inExpression(in); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
		if _, err := expr.Parse(r.inExpression(in)); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
	const errors = `"(?-i:a\"b\\d)"`
	f(`count(/h/k,10m,"regexp","@Errors")>0`, `count(/h/k,10m,"regexp",`+errors+`)>0`)
	f(`find(/h/k,,"iregexp" , "@Errors")=1 and logeventid(/h/k,,"@Errors")=0`, `find(/h/k,,"iregexp" , `+errors+`)=1 and logeventid(/h/k,,`+errors+`)=0`)
	f(`logsource(/h/eventlog["a,b(c)"],,"@Errors")=1`, `logsource(/h/eventlog["a,b(c)"],,`+errors+`)=1`)
	f(`last(/h/k)="@Errors"`, `last(/h/k)="@Errors"`)
	f(`find(/h/k,,"like","@Errors")`, `find(/h/k,,"like","@Errors")`)
	f(`find(/h/k,,"regexp","@None")`, `find(/h/k,,"regexp","@None")`)
	f(`find(/h/k,,"regexp","@Windows service startup states for discovery")`, `find(/h/k,,"regexp","(?i:mine)")`)
}

// The patterns of the defaults say what their expressions say.
func TestRegexps_defaults(t *testing.T) {
	r := compileRegexps(nil)
	f := func(name, text string, want bool) {
		t.Helper()
		re, err := pcre.Compile(r.of("@" + name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := re.Match([]byte(text)); err != nil || got != want {
			t.Errorf("%s of %q: %v %v, want %v", name, text, got, err, want)
		}
	}
	f("File systems for discovery", "ext4", true)
	f("File systems for discovery", "tmpfs", false)
	f("Network interfaces for discovery", "eth0", true)
	f("Network interfaces for discovery", "lo", false)
	f("Network interfaces for discovery", "Software Loopback Interface 1", false)
	f("Windows service startup states for discovery", "automatic delayed", true)
	if r.of("@none") != "@none" || r.of("plain") != "plain" {
		t.Error("a name that is not known was replaced")
	}
}

// A host is built with patterns in the place of names.
func TestDraft_regexps(t *testing.T) {
	own := []model.GlobalRegexp{{Name: "Mine", Expressions: []model.GlobalExpression{{Expression: "first", Type: model.Included}}}}
	filter := model.Filter{Conditions: []model.Condition{{Macro: "{#A}", Value: "@Mine"}}}
	config := &model.HostConfig{
		Host: model.Host{ID: 1, Host: "h"}, Rules: []model.Rule{{Key: "r", Filter: filter}},
		Triggers: []model.Trigger{{ID: 1, Expression: `find(/h/k,,"regexp","@Mine")`}},
	}
	snapshot, _ := Draft(config, Globals{Regexps: own})
	trigger, _ := snapshot.TriggerByID(1)
	if !strings.Contains(trigger.Expression, `"(?i:first)"`) {
		t.Errorf("trigger %s", trigger.Expression)
	}
	if rules := snapshot.hosts[1].rules; len(rules) != 1 || rules[0].Filter.Conditions[0].Value != "(?i:first)" {
		t.Errorf("rules %+v", rules)
	}
	if filter.Conditions[0].Value != "@Mine" {
		t.Error("the configuration itself was changed")
	}
	if g, ok := snapshot.Regexp("Mine"); !ok || len(snapshot.Regexps()) != 6 || g.Name != "Mine" {
		t.Errorf("regexps %v", snapshot.Regexps())
	}
}

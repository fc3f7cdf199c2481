package confcache

import (
	"slices"
	"strings"
	"testing"

	"tidemark/model"
)

func TestMacros_expand(t *testing.T) {
	m := &macros{levels: []macroLevel{
		newLevel([]model.Macro{{Name: "{$HOST}", Value: "own"}, {Name: "{$BASE}", Value: "host base"}, {Name: `{$Q}`, Value: `say "hi"`}}),
		newLevel([]model.Macro{
			{Name: "{$HOST}", Value: "template"},
			{Name: "{$T}", Value: "near"},
			{Name: "{$T}", Value: "far"},
			{Name: `{$BASE:"/var"}`, Value: "context"},
			{Name: `{$BASE:regex:"^/v"}`, Value: "pattern"},
			{Name: `{$R:regex:"^/(boot|tmp)$"}`, Value: "matched"},
			{Name: "{$R}", Value: "any"},
			{Name: `{$BROKEN:regex:"("}`, Value: "never"},
		}),
		newLevel([]model.Macro{{Name: "{$T}", Value: "global"}, {Name: "{$G}", Value: "global"}, {Name: "{$LOOP}", Value: "{$LOOP}{$LOOP}"}}),
	}}
	tests := []struct{ in, want, fault string }{
		{in: "", want: ""},
		{in: "no macros {here} {$", want: "no macros {here} {$"},
		{in: "{$HOST}", want: "own"},
		{in: "{$T}-{$G}", want: "near-global"},
		{in: `{$BASE:"/var"}`, want: "context"},
		{in: `{$BASE:/var}`, want: "context"},
		{in: `{$BASE: "/var" }`, want: "context"},
		{in: `{$BASE:"/vol"}`, want: "pattern"},
		{in: `{$BASE:"/home"}`, want: "host base"},
		{in: `{$BASE}`, want: "host base"},
		{in: `{$R:"/tmp"} {$R:"/tmp/x"}`, want: "matched any"},
		{in: "{$NO}", want: "{$NO}", fault: "macro {$NO} is not defined"},
		{in: "a{$NO}b{$G}", want: "a{$NO}bglobal", fault: "macro {$NO} is not defined"},
		{in: `{$BROKEN:"("}`, want: `{$BROKEN:"("}`, fault: `macro {$BROKEN:"("} is not defined`},
		{in: "{$LOOP}", want: "{$LOOP}{$LOOP}"},
		{in: "{$low}", want: "{$low}"},
		{in: `{$G:"a}`, want: `{$G:"a}`},
	}
	for _, tt := range tests {
		got, err := m.expand(tt.in)
		fault := ""
		if err != nil {
			fault = err.Error()
		}
		if got != tt.want || fault != tt.fault {
			t.Errorf("expand(%q) = %q, %q, want %q, %q", tt.in, got, fault, tt.want, tt.fault)
		}
	}
}

func TestMacros_expandExpression(t *testing.T) {
	m := &macros{levels: []macroLevel{newLevel([]model.Macro{{Name: "{$Q}", Value: `a"b`}, {Name: "{$N}", Value: "5"}})}}
	tests := []struct{ in, want string }{
		{`find(/h/k,,"like","{$Q}")={$N}`, `find(/h/k,,"like","a\"b")=5`},
		{`find(/h/k,,"like","\"{$Q}")=1`, `find(/h/k,,"like","\"a\"b")=1`},
		{`last(/h/k[{$N}])>{$N}`, `last(/h/k[5])>5`},
	}
	for _, tt := range tests {
		if got, err := m.expandExpression(tt.in); got != tt.want || err != nil {
			t.Errorf("expandExpression(%q) = %q, %v, want %q", tt.in, got, err, tt.want)
		}
	}
}

func TestMacros_expandIsBounded(t *testing.T) {
	m := &macros{levels: []macroLevel{newLevel([]model.Macro{{Name: "{$BIG}", Value: strings.Repeat("x", 60<<10)}})}}
	if got, err := m.expand(strings.Repeat("{$BIG}", 300)); err == nil || len(got) > maxExpandedBytes {
		t.Errorf("expanding to 18 MB gave %d bytes and error %v", len(got), err)
	}
}

func FuzzMacros(f *testing.F) {
	for _, seed := range []string{"{$A}", `{$A:"x"}`, `{$A:regex:"^x"}`, `{$A:"\"`, `"{$A}"`, "{$A:{#B}}", "{$", "{$A:regex: "} {
		f.Add(seed)
	}
	m := &macros{levels: []macroLevel{newLevel([]model.Macro{{Name: "{$A}", Value: `v"`}, {Name: `{$A:regex:"^x"}`, Value: "r"}})}}
	f.Fuzz(func(t *testing.T, text string) {
		for _, expand := range []func(string) (string, error){m.expand, m.expandExpression} {
			got, err := expand(text)
			if !strings.Contains(text, "{$") && (got != text || err != nil) {
				t.Errorf("text without macros became %q, %v", got, err)
			}
		}
		newLevel([]model.Macro{{Name: text}})
	})
}

func TestSnapshot_userMacro(t *testing.T) {
	s := emptySnapshot()
	s.global = []model.Macro{{Name: "{$A}", Value: "global"}, {Name: "{$B:ctx}", Value: "of ctx"}}
	s.hosts[1] = &entry{host: model.Host{ID: 1, Macros: []model.Macro{{Name: "{$A}", Value: "own"}}}}
	f := func(host model.HostID, macro, want string) {
		t.Helper()
		if got, ok := s.UserMacro(host, macro); got != want || ok != (want != "") {
			t.Errorf("%s of host %d: %q %v, want %q", macro, host, got, ok, want)
		}
	}
	f(0, "{$A}", "global")
	f(1, "{$A}", "own")
	f(2, "{$A}", "global")
	f(1, "{$B:ctx}", "of ctx")
	f(1, "{$C}", "")
	f(1, "{$A} and more", "")
	f(1, "{HOST.NAME}", "")
}

// Secret macros are for those who ask for values; what people see of an item, a trigger or a tag has stars in their place. A name that came from
// outside is no text with macros.
func TestMacros_secret(t *testing.T) {
	m := macros{levels: []macroLevel{newLevel([]model.Macro{{Name: "{$KEY}", Value: "s3cret", Secret: true}, {Name: "{$KEY:x}", Value: "s4cret", Secret: true}, {Name: "{$OPEN}", Value: "open"}})}}
	if got, err := m.expand("{$KEY} {$KEY:x} {$OPEN}"); err != nil || got != "s3cret s4cret open" {
		t.Errorf("for a collector: %q, %v", got, err)
	}
	s := newSource()
	s.global = []model.Macro{{Name: "{$KEY}", Value: "s3cret", Secret: true}}
	tags := []model.Tag{{Name: "t{$KEY}", Value: "{$KEY} {HOST.NAME}"}}
	s.put(model.HostConfig{
		Host: model.Host{
			ID: 1, Host: "h", Name: "named {$KEY}", Enabled: true,
			Interfaces: []model.Interface{{Type: model.AgentInterface, Main: true, Address: "{HOST.NAME}", DNS: "{$KEY}", Port: "10050"}},
		},
		Items: []model.ItemConfig{{Item: model.Item{
			ID: 1, HostID: 1, Key: "k", Name: "{$KEY} {HOST.NAME}", Type: model.HTTPAgent, Delay: "1m", Enabled: true, Tags: tags, Params: "{HOST.NAME} {$KEY}", AllowedHosts: "{HOST.NAME}",
			Collect: &model.Collect{Password: "{$KEY}"},
		}}},
		Triggers: []model.Trigger{{ID: 1, HostID: 1, Name: "n {$KEY}", EventName: "e {$KEY}", OpData: "o {$KEY}", URL: "http://x/{$KEY}", Expression: "last(/h/k)=\"{$KEY}\"", Tags: tags, Enabled: true}},
	})
	c := New(s, Options{})
	if _, err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	i, _ := c.Snapshot().Item(1)
	h, _ := c.Snapshot().HostByID(1)
	trigger := c.Snapshot().TriggersOf(1)[0]
	wantTags := []model.Tag{{Name: "t******", Value: "****** named {$KEY}"}}
	for _, x := range []struct{ got, want string }{
		{i.Name, "****** named {$KEY}"},
		{i.Params, "named {$KEY} s3cret"},
		{i.AllowedHosts, "named {$KEY}"},
		{i.Collect.Password, "s3cret"},
		{h.Interfaces[0].Address, "named {$KEY}"},
		{h.Interfaces[0].DNS, "s3cret"},
		{trigger.Name + trigger.EventName + trigger.OpData + trigger.URL, "n ******e ******o ******http://x/******"},
		{trigger.Expression, `last(/h/k)="s3cret"`},
	} {
		if x.got != x.want {
			t.Errorf("found %q, want %q", x.got, x.want)
		}
	}
	if !slices.Equal(i.Tags, wantTags) || !slices.Equal(trigger.Tags, wantTags) {
		t.Errorf("tags %v and %v, want %v", i.Tags, trigger.Tags, wantTags)
	}
	if got := m.show("{$KEY} {$KEY:x} {$OPEN} {$NONE}"); got != "****** ****** open {$NONE}" {
		t.Errorf("for people: %q", got)
	}
}

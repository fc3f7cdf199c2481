package model

import (
	"strings"
	"testing"
)

func TestGlobalRegexp_pattern(t *testing.T) {
	f := func(want string, expressions ...GlobalExpression) {
		t.Helper()
		g := GlobalRegexp{Name: "x", Expressions: expressions}
		if err := g.Check(); err != nil || g.Pattern() != want {
			t.Errorf("%s, %v, want %s", g.Pattern(), err, want)
		}
	}
	f(`(?-i:^a|b$)`, GlobalExpression{Expression: "^a|b$", Type: ResultTrue, CaseSensitive: true})
	f(`(?i:a\.b)`, GlobalExpression{Expression: "a.b", Type: Included})
	f(`(?i:a\.b|c)`, GlobalExpression{Expression: "a.b/c", Type: AnyIncluded, Delimiter: "/"})
	f(`\A(?![\s\S]*?(?i:a))`, GlobalExpression{Expression: "a", Type: ResultFalse})
	f(`\A(?=[\s\S]*?(?i:a))(?![\s\S]*?(?-i:b))`, GlobalExpression{Expression: "a", Type: Included}, GlobalExpression{Expression: "b", Type: NotIncluded, CaseSensitive: true})
}

func TestGlobalRegexp_check(t *testing.T) {
	good := GlobalExpression{Expression: "a", Type: Included}
	f := func(g GlobalRegexp, want string) {
		t.Helper()
		if err := g.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", g, err, want)
		}
	}
	f(GlobalRegexp{Expressions: []GlobalExpression{good}}, "the name")
	f(GlobalRegexp{Name: `a"b`, Expressions: []GlobalExpression{good}}, "the name")
	f(GlobalRegexp{Name: "a"}, "0 expressions")
	f(GlobalRegexp{Name: "a", Expressions: []GlobalExpression{{Type: Included}}}, "expression 1 has 0 bytes")
	f(GlobalRegexp{Name: "a", Expressions: []GlobalExpression{good, {Expression: "x", Type: "like"}}}, `expression 2 is of type "like"`)
	f(GlobalRegexp{Name: "a", Expressions: []GlobalExpression{{Expression: "x", Type: AnyIncluded, Delimiter: ";"}}}, "delimiter")
	for _, g := range DefaultRegexps() {
		if err := g.Check(); err != nil {
			t.Error(err)
		}
	}
}

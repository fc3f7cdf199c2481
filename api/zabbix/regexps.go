package zabbix

import (
	"slices"

	"tidemark/access"
	"tidemark/internal/pcre"
	"tidemark/model"
)

// Regexp is a global regular expression.
type Regexp struct {
	model.GlobalRegexp
	// Default says that it comes with the program, and nobody has put another in its place.
	Default bool
}

func regexpID(r *Regexp) string { return stableID(0, "regexp "+r.Name) }

// delimiterOf is what Zabbix has for expressions that need no delimiter.
func delimiterOf(e *model.GlobalExpression) string { return cmpOr(e.Delimiter, ",") }

var expressionKind = kind[model.GlobalExpression]{
	name: "expression", id: "expression",
	fields: []field[model.GlobalExpression]{
		{name: "expression", get: func(e *model.GlobalExpression) string { return e.Expression }},
		{name: "expression_type", number: true, get: func(e *model.GlobalExpression) string { return formatInt(e.Number()) }},
		{name: "exp_delimiter", get: delimiterOf},
		{name: "case_sensitive", number: true, get: func(e *model.GlobalExpression) string { return formatBool(e.CaseSensitive) }},
	},
}

var regexpKind = kind[Regexp]{
	name: "regular expression", id: "regexpid", strict: true,
	fields: []field[Regexp]{
		{name: "regexpid", number: true, get: regexpID},
		{name: "name", get: func(r *Regexp) string { return r.Name }},
		{name: "test_string", get: func(r *Regexp) string { return r.Test }},
	},
	selects: []selection[Regexp]{
		{"selectExpressions", "expressions", func(_ *call, o output, r *Regexp) any { return pickAll(o, &expressionKind, r.Expressions) }},
	},
}

// getRegexps lists the global regular expressions, one's own and those that come with the program.
func getRegexps(c *call) ([]byte, error) {
	ids := c.ids("regexpids")
	all, err := c.options.Objects.Regexps(c.ctx)
	if err != nil {
		return nil, err
	}
	rows := slices.DeleteFunc(all, func(r Regexp) bool { return !ids.hasText(regexpID(&r)) })
	return answer(c, &regexpKind, rows)
}

// readRegexp reads a global regular expression.
func (p *params) readRegexp(known []Regexp, update bool) (g model.GlobalRegexp, err error) {
	name := p.text("name")
	if update {
		p.require("regexpid")
		id := p.text("regexpid")
		i := slices.IndexFunc(known, func(r Regexp) bool { return regexpID(&r) == id })
		if i < 0 {
			return g, errNotAllowed
		}
		if g = known[i].GlobalRegexp; name != "" && name != g.Name {
			return g, invalidParams(`Invalid parameter "/%sname": a regular expression keeps its name, by which items use it; make another one.`, p.place)
		}
	} else {
		for _, member := range []string{"name", "expressions"} {
			p.require(member)
		}
		if g.Name = name; slices.ContainsFunc(known, func(r Regexp) bool { return r.Name == name }) {
			return g, invalidParams("Regular expression %q already exists.", name)
		}
	}
	if _, ok := p.get("test_string"); ok {
		g.Test = p.text("test_string")
	}
	if given, ok := p.children("expressions"); ok {
		g.Expressions = nil
		for _, one := range given {
			g.Expressions = append(g.Expressions, one.readExpression())
			p.keep(one.done())
		}
	}
	return g, p.done()
}

func (p *params) readExpression() model.GlobalExpression {
	for _, member := range []string{"expression", "expression_type"} {
		p.require(member)
	}
	e := model.GlobalExpression{
		Expression: p.text("expression"), Type: model.ExpressionTypes[p.number("expression_type", 0, int64(len(model.ExpressionTypes)-1))], CaseSensitive: p.flag("case_sensitive"),
	}
	if delimiter := p.text("exp_delimiter"); e.Type == model.AnyIncluded {
		e.Delimiter = cmpOr(delimiter, ",")
	}
	pattern, _ := e.Pattern()
	if _, err := pcre.Compile(pattern); err != nil {
		p.fail("expression", "invalid regular expression: "+err.Error())
	}
	return e
}

// changeRegexps makes global regular expressions or changes them, for editors of all hosts: items of everybody use them.
func changeRegexps(c *call, update bool) ([]byte, error) {
	if c.visible != nil {
		return nil, errNotAllowed
	}
	known, err := c.options.Objects.Regexps(c.ctx)
	if err != nil {
		return nil, err
	}
	var next []*model.GlobalRegexp
	seen := make(map[string]bool)
	ids, err := c.eachObject(func(p *params) (string, error) {
		p.once(seen, "name", "regexpid")
		g, err := p.readRegexp(known, update)
		next = append(next, &g)
		return regexpID(&Regexp{GlobalRegexp: g}), err
	}, func() error { return c.options.Objects.PutRegexps(c.ctx, next) })
	if err != nil {
		return nil, err
	}
	for _, g := range next {
		var before any
		if i := slices.IndexFunc(known, func(r Regexp) bool { return r.Name == g.Name }); i >= 0 {
			before = known[i].GlobalRegexp
		}
		access.Changed(c.ctx, "regular expression "+g.Name, before, g)
	}
	return encodeJSON(map[string]any{"regexpids": ids})
}

func createRegexps(c *call) ([]byte, error) { return changeRegexps(c, false) }

func updateRegexps(c *call) ([]byte, error) { return changeRegexps(c, true) }

// deleteRegexps deletes global regular expressions of one's own; a default of the same name is in force again.
func deleteRegexps(c *call) ([]byte, error) {
	if c.visible != nil {
		return nil, errNotAllowed
	}
	return deleteNamed(c, removal[Regexp]{
		answer: "regexpids", what: "regular expression", id: regexpID, name: func(r *Regexp) string { return r.Name },
		all: func() ([]Regexp, error) { return c.options.Objects.Regexps(c.ctx) },
		check: func(r *Regexp) error {
			if r.Default {
				return invalidParams("Regular expression %q comes with the program: it can be changed and not deleted.", r.Name)
			}
			return nil
		},
		remove: func(names []string) error { return c.options.Objects.DeleteRegexps(c.ctx, names) },
		before: func(r *Regexp) any { return r.GlobalRegexp },
	})
}

package confdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tidemark/internal/pcre"
	"tidemark/model"
)

// maxRegexps bounds the global regular expressions.
const maxRegexps = 1000

// Regexps returns the global regular expressions of one's own, by name.
func (d *DB) Regexps(ctx context.Context) ([]model.GlobalRegexp, error) {
	rows, err := d.sql.QueryContext(ctx, "SELECT name, body FROM regexps ORDER BY name")
	if err != nil {
		return nil, d.wrap("read global regular expressions", err)
	}
	var list []model.GlobalRegexp
	err = each(rows, func(r *sql.Rows) error {
		var g model.GlobalRegexp
		var name, body string
		err := r.Scan(&name, &body)
		if err == nil {
			err = json.Unmarshal([]byte(body), &g)
		}
		g.Name = name
		list = append(list, g)
		return err
	})
	return list, d.wrap("read global regular expressions", err)
}

// PutRegexp stores global regular expressions over those of the same names: all of them or, with an error, none.
func (d *DB) PutRegexp(ctx context.Context, list ...*model.GlobalRegexp) error {
	bodies := make([]string, 0, len(list))
	for _, g := range list {
		body, err := regexpBody(g)
		if err != nil {
			return d.wrap("store a global regular expression", err)
		}
		bodies = append(bodies, body)
	}
	return d.change(ctx, "store a global regular expression", func(c *change) error {
		c.all = true
		for i, g := range list {
			if err := c.exec(ctx, putRegexp, g.Name, bodies[i]); err != nil {
				return err
			}
		}
		n, err := c.id(ctx, "SELECT count(*) FROM regexps")
		if err == nil && n > maxRegexps {
			err = fmt.Errorf("%w; more than %d global regular expressions", ErrInvalid, maxRegexps)
		}
		return err
	})
}

const putRegexp = "INSERT INTO regexps (name, body) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET body = excluded.body"

// DeleteRegexp deletes global regular expressions of one's own: all of them or, with an error, none.
func (d *DB) DeleteRegexp(ctx context.Context, names ...string) error {
	return d.change(ctx, "delete a global regular expression", func(c *change) error {
		for _, name := range names {
			have, err := c.id(ctx, "SELECT count(*) FROM regexps WHERE name = ?", name)
			if err != nil {
				return err
			}
			if have == 0 {
				return fmt.Errorf("global regular expression %q: %w", name, ErrNotFound)
			}
			c.all = true
			if err := c.exec(ctx, "DELETE FROM regexps WHERE name = ?", name); err != nil {
				return err
			}
		}
		return nil
	})
}

// regexpBody checks a global regular expression and returns it as it is stored.
func regexpBody(g *model.GlobalRegexp) (string, error) {
	if err := g.Check(); err != nil {
		return "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	for i := range g.Expressions {
		pattern, _ := g.Expressions[i].Pattern()
		if _, err := pcre.Compile(pattern); err != nil {
			return "", fmt.Errorf("%w: expression %d: %w", ErrInvalid, i+1, err)
		}
	}
	if _, err := pcre.Compile(g.Pattern()); err != nil {
		return "", fmt.Errorf("%w: the expressions together: %w", ErrInvalid, err)
	}
	body, err := json.Marshal(g)
	return string(body), err
}

// regexps reads the section regular_expressions. Zabbix's exports have none; imports from its database do, and files written by hand may. What a
// default says anyway is left out.
func (d *decoder) regexps(x *export, top *node) {
	d.path, d.bad = "regular expressions", false
	for _, n := range d.objects(top, "regular_expressions") {
		g := model.GlobalRegexp{Name: d.name(n, "name"), Test: d.text(n, "test_string", "")}
		for _, o := range d.objects(n, "expressions") {
			e := model.GlobalExpression{
				Expression: d.text(o, "expression", ""), Type: strings.ToLower(d.text(o, "expression_type", model.Included)), Delimiter: d.text(o, "exp_delimiter", ","),
			}
			if number := strings.IndexAny("01234", e.Type); len(e.Type) == 1 && number >= 0 {
				e.Type = model.ExpressionTypes[number]
			}
			e.CaseSensitive = slices.Contains([]string{"1", "yes", "true"}, strings.ToLower(d.text(o, "case_sensitive", "NO")))
			if e.Type != model.AnyIncluded {
				e.Delimiter = ""
			}
			g.Expressions = append(g.Expressions, e)
		}
		if _, err := regexpBody(&g); err != nil {
			d.report.remark(d.path, n.line, "%q: %v; not taken", g.Name, err)
			continue
		}
		x.regexps = append(x.regexps, g)
	}
}

// regexps adds the global regular expressions of the file; others stay.
func (i *importer) regexps(ctx context.Context, list []model.GlobalRegexp) error {
	for n := range list {
		body, err := regexpBody(&list[n])
		if err != nil {
			return err
		}
		old := ""
		err = i.query(ctx, func(r *sql.Rows) error { return r.Scan(&old) }, "SELECT body FROM regexps WHERE name = ?", list[n].Name)
		if err != nil {
			return err
		}
		what := created
		switch old {
		case "":
		case body:
			i.report.count(kindRegexp, unchanged)
			continue
		default:
			what = updated
		}
		if err := i.exec(ctx, putRegexp, list[n].Name, body); err != nil {
			return err
		}
		i.all = true
		i.report.count(kindRegexp, what)
	}
	return nil
}

package zabbixdb

import "context"

// regexps adds the global regular expressions.
func (e *exporter) regexps(ctx context.Context) error {
	expressions := make(map[int64][]object)
	err := e.each(ctx, "SELECT * FROM expressions ORDER BY expressionid", func(r row) error {
		id := r.id("regexpid")
		expressions[id] = append(expressions[id], object{
			"expression": r["expression"], "expression_type": r["expression_type"], "exp_delimiter": r["exp_delimiter"], "case_sensitive": r["case_sensitive"],
		})
		return nil
	})
	if err != nil {
		return err
	}
	var list []object
	err = e.each(ctx, "SELECT * FROM regexps ORDER BY regexpid", func(r row) error {
		o := object{"name": r["name"], "expressions": expressions[r.id("regexpid")]}
		o.put("test_string", r["test_string"], "")
		list = append(list, o)
		return nil
	})
	e.part.putList("regular_expressions", list)
	return err
}

package confdb

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"tidemark/model"
)

func TestRegexps(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	file := []byte(`zabbix_export:
  version: '6.0'
  regular_expressions:
    - name: Errors
      test_string: a fatal one
      expressions:
        - {expression: 'error,fatal', expression_type: '1', exp_delimiter: ','}
        - {expression: '^#', expression_type: result_false, case_sensitive: 'YES'}
    - name: Broken
      expressions: [{expression: '(', expression_type: '3'}]
    - name: Empty
`)
	want := model.GlobalRegexp{Name: "Errors", Test: "a fatal one", Expressions: []model.GlobalExpression{
		{Expression: "error,fatal", Type: model.AnyIncluded, Delimiter: ","}, {Expression: "^#", Type: model.ResultFalse, CaseSensitive: true},
	}}
	for _, count := range []Count{{Kind: kindRegexp, Created: 1}, {Kind: kindRegexp, Unchanged: 1}} {
		report, err := d.Import(ctx, "regexps.yaml", file, ImportOptions{})
		if err != nil || report.Counts[0] != count || len(report.Remarks) != 2 {
			t.Fatalf("import: %v, %+v, expected %+v and two remarks", err, report, count)
		}
	}
	list, err := d.Regexps(ctx)
	if err != nil || len(list) != 1 || !reflect.DeepEqual(list[0], want) {
		t.Fatalf("%+v, %v", list, err)
	}
	revision, _, _, err := d.Changes(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	want.Test = ""
	if err := d.PutRegexp(ctx, &want); err != nil {
		t.Fatal(err)
	}
	if now, _, _, err := d.Changes(ctx, 0); err != nil || now <= revision {
		t.Errorf("revision %d after %d: %v", now, revision, err)
	}
	bad := model.GlobalRegexp{Name: "Bad", Expressions: []model.GlobalExpression{{Expression: "[", Type: model.ResultTrue}}}
	if err := d.PutRegexp(ctx, &bad); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "expression 1") {
		t.Errorf("a broken pattern: %v", err)
	}
	if err := d.DeleteRegexp(ctx, "Bad"); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleting nothing: %v", err)
	}
	if err := d.DeleteRegexp(ctx, "Errors"); err != nil {
		t.Error(err)
	}
	if list, err := d.Regexps(ctx); err != nil || len(list) != 0 {
		t.Errorf("%v %v", list, err)
	}
}

package discovery

import (
	"testing"

	"tidemark/model"
)

// FuzzReadRows reads arbitrary values; what is taken has macros only, within the limits.
func FuzzReadRows(f *testing.F) {
	for _, s := range []string{
		`[{"{#A}":"b","{#N}":1.5,"{#T}":true,"{#Z}":null,"x":{"y":"z"}}]`, `{"data":[{"{#A}":"b"}]}`, `[{"{#A}":"b"},`, `[null]`, `{"data":{}}`, "[\x00]", ``,
	} {
		f.Add([]byte(s))
	}
	paths, err := compilePaths([]model.MacroPath{{Macro: "{#P}", Path: "$.x.y"}, {Macro: "{#Q}", Path: "$..y"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, err := readRows(text, paths)
		if err != nil {
			if len(rows) > 0 {
				t.Fatal("rows of a value that is refused")
			}
			return
		}
		for _, row := range rows {
			for name, value := range row {
				if !isMacro(name) || len(value) > maxMacroBytes {
					t.Fatalf("%q is %d bytes", name, len(value))
				}
			}
		}
	})
}

// FuzzParseFormula parses arbitrary formulas and evaluates what is taken.
func FuzzParseFormula(f *testing.F) {
	for _, s := range []string{"A and (B or not C)", "not not A", "((A))", "A or", ")", "and", "A  AND\tB", "AandB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rule := model.Filter{Kind: model.FilterFormula, Formula: text, Conditions: []model.Condition{
			{ID: "A", Macro: "{#A}", Operator: model.MacroExists}, {ID: "B", Macro: "{#B}", Operator: model.MacroExists}, {ID: "C", Macro: "{#C}", Operator: model.MacroNotExists},
		}}
		c, err := compileFilter(&rule)
		if err != nil {
			return
		}
		if _, err := c.takes(map[string]string{"{#A}": "x"}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestFilter(t *testing.T) {
	row := map[string]string{"{#A}": "ext4", "{#B}": "lo"}
	f := func(filter model.Filter, want string) {
		t.Helper()
		c, err := compileFilter(&filter)
		got := ""
		if err != nil {
			got = err.Error()
		} else if ok, err := c.takes(row); err != nil {
			got = err.Error()
		} else if ok {
			got = "yes"
		}
		if got != want {
			t.Errorf("%+v: %q, want %q", filter, got, want)
		}
	}
	a := model.Condition{ID: "A", Macro: "{#A}", Value: "^ext"}
	x := model.Condition{ID: "X", Macro: "{#A}", Value: "^xfs"}
	b := model.Condition{ID: "B", Macro: "{#B}", Operator: model.NotMatchesRegex, Value: "^lo"}
	none := model.Condition{ID: "N", Macro: "{#N}", Operator: model.NotMatchesRegex, Value: "x"}
	f(model.Filter{}, "yes")
	f(model.Filter{Conditions: []model.Condition{a, x}}, "yes")
	f(model.Filter{Conditions: []model.Condition{a, x, b}}, "")
	f(model.Filter{Kind: model.FilterAnd, Conditions: []model.Condition{a, x}}, "")
	f(model.Filter{Kind: model.FilterOr, Conditions: []model.Condition{x, b, a}}, "yes")
	f(model.Filter{Conditions: []model.Condition{none}}, "")
	f(model.Filter{Conditions: []model.Condition{{Macro: "{#A}", Value: "@Mine"}}}, `the filter on {#A}: there is no global regular expression "Mine"; make one of that name, or put its expression in its place`)
	f(model.Filter{Kind: model.FilterFormula, Formula: "A and Y", Conditions: []model.Condition{a}}, `the filter's formula "A and Y": expected the id of a condition at character 7`)
	f(model.Filter{Kind: model.FilterFormula, Formula: "not X and (B or A)", Conditions: []model.Condition{a, x, b}}, "yes")
}

package dashboard

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// whole uses every field.
func whole() *Dashboard {
	return &Dashboard{
		Name: "Fleet: yes", Description: "two\nlines ", Everyone: true, Range: "6h", Refresh: 30,
		Variables: []Variable{
			{Name: "group", Kind: "group", Default: "Linux"},
			{Name: "host", Title: "Machine", Kind: "host", Group: "$group"},
			{Name: "mode", Kind: "label", Label: "mode", Match: `{__name__="system_cpu_util"}`},
			{Name: "size", Kind: "list", Values: []string{"1", "on", "null"}},
		},
		Widgets: []Widget{
			{Kind: "chart", Title: "# CPU", W: 12, H: 8, Items: []Item{{Host: "$host", Key: "system.cpu.util[*]", Name: "all"}, {Group: "$group", Key: "x", Mirror: true}}, Stack: true, Units: "%"},
			{Kind: "chart", X: 12, W: 12, H: 8, Queries: []Query{{Expr: "sum by (host) (rate(net_if_in{host=~\"$host\"}[5m]))\n  * 8", Legend: "{{host}}"}}},
			{Kind: "number", Y: 8, W: 4, H: 4, Queries: []Query{{Expr: "1"}}, Thresholds: []Threshold{{Value: 0.5, Severity: "high"}}},
			{Kind: "problems", X: 4, Y: 8, W: 8, H: 8, Host: "db-1", Group: "g", Severities: []string{"high", "not classified"}, Limit: 10},
			{Kind: "requests", X: 12, Y: 8, W: 12, H: 8, Instance: "db-1/127.0.0.1:27017", Limit: 5},
			{Kind: "graph", Y: 16, W: 12, H: 8, Host: "$host", Graph: "CPU: jumps"},
			{Kind: "log", Y: 24, W: 12, H: 8, Items: []Item{{Host: "h", Key: "log[/var/log/x]"}}},
			{Kind: "timeline", Y: 32, W: 12, H: 8, Items: []Item{{Host: "h", Key: "state"}}},
			{Kind: "table", Y: 40, W: 12, H: 8, Items: []Item{{Host: "h", Key: "k"}}, Queries: []Query{{Expr: "up"}}},
			{Kind: "text", Y: 48, W: 24, H: 4, Text: "# Title\n\n- one\n- `two`\n\ttab  \n"},
		},
	}
}

func TestRoundTrip(t *testing.T) {
	d := whole()
	first, err := Format([]*Dashboard{d, {Name: "empty"}})
	if err != nil {
		t.Fatal(err)
	}
	list, err := Parse(first)
	if err != nil {
		t.Fatalf("%v in\n%s", err, first)
	}
	if !reflect.DeepEqual(list[0], d) {
		t.Errorf("read back: %+v\nwant %+v\n%s", list[0], d, first)
	}
	body, err := list[0].Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Format([]*Dashboard{again, list[1]})
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the second time it is written as\n%s\nand not\n%s (%v)", second, first, err)
	}
}

func TestCheck(t *testing.T) {
	f := func(change func(*Dashboard), want string) {
		t.Helper()
		d := whole()
		change(d)
		err := d.Check()
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	f(func(d *Dashboard) { d.Name = "" }, "name is missing")
	f(func(d *Dashboard) { d.Name = " x" }, "no space at its ends")
	f(func(d *Dashboard) { d.Name = "a\nb" }, "more than one line")
	f(func(d *Dashboard) { d.Range = "long" }, `range is "long"`)
	f(func(d *Dashboard) { d.Refresh = 1 }, "refresh_seconds is 1, expected 5 to 3600")
	f(func(d *Dashboard) { d.Variables[0].Name = "Group" }, "variable 1: name is")
	f(func(d *Dashboard) { d.Variables[1].Name = "group" }, `two called "group"`)
	f(func(d *Dashboard) { d.Variables[0].Kind = "x" }, "expected host, group, label, list")
	f(func(d *Dashboard) { d.Variables[2].Label = "a b" }, "expected the name of a label")
	f(func(d *Dashboard) { d.Variables[3].Values = nil }, "values is empty")
	f(func(d *Dashboard) { d.Variables[0].Label = "x" }, "a field of another kind")
	f(func(d *Dashboard) { d.Widgets[0].Kind = "pie" }, `kind is "pie"`)
	f(func(d *Dashboard) { d.Widgets[0].X = 13 }, `widget 1 ("# CPU"): x is 13, expected 0 to 12`)
	f(func(d *Dashboard) { d.Widgets[0].W = 25 }, "w is 25")
	f(func(d *Dashboard) { d.Widgets[0].H = 0 }, "h is 0")
	f(func(d *Dashboard) { d.Widgets[0].Y = -1 }, "y is -1")
	f(func(d *Dashboard) { d.Widgets[0].Items = nil }, "it shows nothing")
	f(func(d *Dashboard) { d.Widgets[0].Items[0].Group = "g" }, "a host or a group, and not both")
	f(func(d *Dashboard) { d.Widgets[1].Queries[0].Expr = " " }, "a query is empty")
	f(func(d *Dashboard) { d.Widgets[2].Queries = append(d.Widgets[2].Queries, Query{Expr: "2"}) }, "takes at most 1")
	f(func(d *Dashboard) { d.Widgets[2].Thresholds[0].Severity = "bad" }, "threshold")
	f(func(d *Dashboard) { d.Widgets[3].Limit = 101 }, "limit is 101")
	f(func(d *Dashboard) { d.Widgets[3].Items = []Item{{Host: "h", Key: "k"}} }, "takes at most 0")
	f(func(d *Dashboard) { d.Widgets[4].Instance = "" }, "instance is missing")
	f(func(d *Dashboard) { d.Widgets[5].Graph = "" }, "graph is missing")
	f(func(d *Dashboard) { d.Widgets[6].Queries = []Query{{Expr: "1"}} }, "take no queries")
	f(func(d *Dashboard) { d.Widgets[9].Text = "a\x00" }, "control character")
	f(func(d *Dashboard) { d.Widgets[9].Text = "\xff" }, "no UTF-8")
	f(func(d *Dashboard) { d.Widgets[9].Text = strings.Repeat("x", maxTextBytes+1) }, "at most 16384")
	f(func(d *Dashboard) { d.Widgets = make([]Widget, MaxWidgets+1) }, "61 widgets, at most 60")
}

func TestParse_mistakes(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if _, err := Parse([]byte(text)); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	f("dashboards: [{name: a, colour: red}]", "colour")
	f("dashboards: [null]", "number 1 of the file is empty")
	f("dashboards: [{name: a}, {name: A}]", "in the file twice")
	f("dashboards: {", "did not find")
	f("", "")
	if _, err := Decode([]byte(`{"name":"a","widgets":[]} x`)); !errors.Is(err, ErrInvalid) {
		t.Errorf("text after the end: %v", err)
	}
	if _, err := Decode([]byte(`{"name":"a","other":1}`)); !errors.Is(err, ErrInvalid) {
		t.Errorf("unknown field: %v", err)
	}
	if _, err := Decode(bytes.Repeat([]byte(" "), MaxBytes+1)); !errors.Is(err, ErrInvalid) {
		t.Errorf("too large: %v", err)
	}
}

func TestPlan(t *testing.T) {
	have := []*Dashboard{{Name: "a"}, {Name: "b", Range: "1h"}, {Name: "c"}}
	want := []*Dashboard{{Name: "B", Range: "2h"}, {Name: "d"}, {Name: "a"}}
	f := func(replace bool, want1 string) {
		t.Helper()
		steps, err := Plan(have, want, replace)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range steps {
			got = append(got, s.What+" "+s.Name)
		}
		if strings.Join(got, ", ") != want1 {
			t.Errorf("%v, want %s", got, want1)
		}
	}
	f(false, "change B, create d, unchanged a")
	f(true, "change B, create d, unchanged a, delete c")
	steps, _ := Plan(have, want, false)
	if got, want := strings.Join(steps[0].Differences, "|"), `- - name: b|-   range: 1h|+ - name: B|+   range: 2h`; got != want {
		t.Errorf("differences: %s, want %s", got, want)
	}
}

func FuzzParse(f *testing.F) {
	text, err := Format([]*Dashboard{whole()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("dashboards: [{name: '1e3', widgets: [{kind: text, w: 1, h: 1, text: \"a\\n \\n\\tb\"}]}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := Parse(text)
		if err != nil {
			return
		}
		first, err := Format(list)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(first)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, first)
		}
		second, err := Format(again)
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("written differently the second time: %q, %q", first, second)
		}
		if len(list) > 0 && jsons(t, list) != jsons(t, again) {
			t.Fatalf("read back differently: %s, %s", jsons(t, list), jsons(t, again))
		}
	})
}

func jsons(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

package model

import (
	"regexp"
	"testing"
)

func TestValueMap(t *testing.T) {
	m := &ValueMap{Mappings: []Mapping{
		{Kind: MapEqual, Value: "1", Text: "up"},
		{Kind: MapDefault, Text: "other"},
		{Kind: MapAtLeast, Value: "100", Text: "many"},
		{Kind: MapAtMost, Value: "-10", Text: "few"},
		{Kind: MapRange, Value: "2-4, 7,-5--3", Text: "some"},
		{Kind: MapRegex, Pattern: regexp.MustCompile("^ok"), Text: "fine"},
		{Kind: MapRegex, Text: "never"},
		{Kind: MapRange, Value: "x,y-z", Text: "never"},
		{Kind: MapEqual, Value: "word", Text: "a word"},
	}}
	f := func(value string, numeric bool, want string) {
		t.Helper()
		if got, ok := m.Map(value, numeric); !ok || got != want {
			t.Errorf("%q: %q %v, want %q", value, got, ok, want)
		}
	}
	f("1", true, "up")
	f("1.0", true, "up")
	f("1.0", false, "other")
	f("3", true, "some")
	f("7", true, "some")
	f("-4", true, "some")
	f("5", true, "other")
	f("100", true, "many")
	f("-10", true, "few")
	f("okay", false, "fine")
	f("word", false, "a word")
	f("none", true, "other")
	if text, ok := (*ValueMap)(nil).Map("1", true); ok || text != "" {
		t.Error("a nil map has a text")
	}
	if text, ok := (&ValueMap{}).Map("1", true); ok || text != "" {
		t.Error("an empty map has a text")
	}
}

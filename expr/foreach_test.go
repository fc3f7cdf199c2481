package expr

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"tidemark/model"
)

// hourTrends has one trend an hour whose average is the hour of the day.
type hourTrends struct{ zone *time.Location }

func (h hourTrends) Hours(_ context.Context, _ model.ItemID, r model.TimeRange, dst []model.Trend) ([]model.Trend, model.ValueType, error) {
	for at := r.From; at < r.To; at += int64(time.Hour) {
		v := float64(time.Unix(0, at).In(h.zone).Hour())
		dst = append(dst, model.Trend{At: at, Count: 2, Min: math.Float64bits(v - 1), Max: math.Float64bits(v + 1), Sum: 2 * v})
	}
	return dst, model.Float, nil
}

func formula(t *testing.T, m *Machine, text string, item Item, at time.Time) string {
	t.Helper()
	e, err := ParseFormula(text)
	if err != nil {
		return err.Error()
	}
	if why := e.Program.Broken(); why != "" {
		return "broken: " + why
	}
	items := make([]Item, len(e.Refs))
	for i := range items {
		items[i] = item
	}
	r := m.Evaluate(context.Background(), e.Program, items, Moment{At: at.UnixNano(), Now: at.UnixNano()})
	if r.Failure.Code != FailNone {
		return "unknown: " + e.Program.FailureText(r.Failure, e.Refs)
	}
	return r.String()
}

func TestTrends(t *testing.T) {
	zone := time.FixedZone("", 2*3600)
	m := &Machine{Trends: hourTrends{zone}, Zone: zone}
	at := time.Date(2026, 3, 10, 15, 40, 20, 0, zone)
	item := Item{ID: 1, Type: model.Float}
	f := func(text, want string) {
		t.Helper()
		if got := formula(t, m, text, item, at); got != want {
			t.Errorf("%s = %s, want %s", text, got, want)
		}
	}
	f("trendavg(/h/k,1h:now/h)", "14")
	f("trendmin(/h/k,2h:now/h)", "12")
	f("trendmax(/h/k,2h:now/h-1d)", "15")
	f("trendsum(/h/k,2h:now/h)", "54")
	f("trendcount(/h/k,1d:now/d)", "48")
	f("trendcount(/h/k,1M:now/M)", "1344")  // February
	f("trendcount(/h/k,1y:now/y)", "17520") // 2025
	f("baselinewma(/h/k,1h:now/h,\"d\",3)", "14")
	f("baselinewma(/h/k,1h:now/h,\"h\",3)", "12.333333333333334")
	f("baselinedev(/h/k,1h:now/h,\"d\",3)", "0")
	f("baselinedev(/h/k,1h:now/h,\"h\",1)", "1")
	f("trendavg(/h/k,1h:now-1h)", `column 15: expected whole hours or more that end at the start of an hour, such as 1h:now/h, found "1h:now-1h"`)
	f("trendavg(/h/k,90m:now/h)", `column 15: expected whole hours or more that end at the start of an hour, such as 1h:now/h, found "90m:now/h"`)
	f("trendavg(/h/k,1h:now/m)", `column 15: expected whole hours or more that end at the start of an hour, such as 1h:now/h, found "1h:now/m"`)
	f("baselinewma(/h/k,1d:now/d,\"h\",3)", `column 27: expected a season that is not shorter than the period, found "h"`)
	f("baselinewma(/h/k,1d:now/d,\"d\",0)", `column 31: expected 1 to 60 seasons, found "0"`)
	item.Type = model.Text
	f("trendavg(/h/k,1h:now/h)", "unknown: trendavg(/h/k,1h:now/h): the function cannot use values of the item's type")
	item.Type, m.Trends = model.Float, nil
	f("trendavg(/h/k,1h:now/h)", "unknown: trendavg(/h/k,1h:now/h): there are no trends here")
}

func TestForeach(t *testing.T) {
	b := model.NewBatch()
	second := int64(time.Second)
	for i := range int64(4) {
		b.AppendFloat(1, (i+1)*second, float64(i))
		b.AppendUint(2, (i+1)*second, uint64(10*i))
	}
	b.AppendString(3, second, model.Text, "up")
	for i := range int64(3) {
		b.AppendUint(5, (i+1)*second, uint64(10*i)) // le="1"
		b.AppendUint(6, (i+1)*second, uint64(20*i)) // le="2"
		b.AppendUint(7, (i+1)*second, uint64(20*i)) // le="+Inf"
	}
	numbers := []Item{{ID: 1, Type: model.Float}, {ID: 2, Type: model.Uint}, {ID: 4, Type: model.Uint}, {ID: 8, Missing: true}, {ID: 9, Unsupported: true}}
	buckets := []Item{
		{ID: 7, Type: model.Uint, Key: "b[+Inf]"},
		{ID: 5, Type: model.Uint, Key: `b["1"]`},
		{ID: 6, Type: model.Uint, Key: "b[2]"},
		{ID: 6, Type: model.Uint, Key: "b[x]"},
	}
	m := &Machine{Values: sliceValues{batch: b}}
	f := func(many []Item, text, want string) {
		t.Helper()
		if got := formula(t, m, text, Item{Many: many}, time.Unix(4, 0)); got != want {
			t.Errorf("%s = %s, want %s", text, got, want)
		}
	}
	f(numbers, "sum(last_foreach(/*/k))", "33")
	f(numbers, "avg(last_foreach(/*/k,2s))", "16.5")
	f(numbers, "min(avg_foreach(/*/k,4s))", "1.5")
	f(numbers, "max(sum_foreach(/*/k,4s))", "60")
	f(numbers, "sum(max_foreach(/*/k,#2))+sum(min_foreach(/*/k,#2))", "55")
	f(numbers, "count(last_foreach(/*/k))", "2")
	f(numbers, "count(last_foreach(/*/k),\"gt\",5)", "1")
	f(numbers, "sum(count_foreach(/*/k,4s))", "8")
	f(numbers, "sum(count_foreach(/*/k,4s,\"ge\",2))", "5")
	f(numbers, "item_count(exists_foreach(/*/k))", "4")
	f(numbers, "varpop(last_foreach(/*/k))+mad(last_foreach(/*/k))", "195.75")
	f([]Item{{ID: 3, Type: model.Text}, {ID: 1, Type: model.Float}}, `count(last_foreach(/*/k),"like","u")`, "1")
	f(nil, "sum(last_foreach(/*/k))", "unknown: not enough values in the period")
	f(nil, "count(last_foreach(/*/k))", "0")
	f(nil, "item_count(last_foreach(/*/k))", "0")
	f(numbers, "last_foreach(/*/k)", "unknown: a function got a value outside of what it is defined for")
	f(numbers, "last_foreach(/*/k)+1", "unknown: a function got a value outside of what it is defined for")
	f(numbers, "abs(last_foreach(/*/k))", "unknown: a function got a value outside of what it is defined for")
	f(numbers, "sum(1,last_foreach(/*/k))", "unknown: a function got a value outside of what it is defined for")
	f(numbers, "kurtosis(1)", "unknown: a function got a value outside of what it is defined for")
	f(buckets, "histogram_quantile(0.75,bucket_rate_foreach(/*/b[*],5s,1))", "1.5")
	f(buckets, "bucket_percentile(/*/b[*],5s,25)", "0.5")
	f(buckets, "histogram_quantile(1.5,bucket_rate_foreach(/*/b[*],5s))", "unknown: a function got a value outside of what it is defined for")
	f(nil, `histogram_quantile(0.5,1,10,2,20,"Inf",20)`, "1")
	f(nil, "histogram_quantile(0.5,1,10)", "unknown: not enough values in the period")
}

func TestQuery(t *testing.T) {
	f := func(host, key string, wantKeys, wantItems string) {
		t.Helper()
		q, err := ParseQuery(Ref{host, key})
		if err != nil {
			if err.Error() != wantKeys {
				t.Errorf("%s: %v, want %s", key, err, wantKeys)
			}
			return
		}
		var keys, items []string
		for _, k := range []string{"k", "k[a]", `k["a",b]`, "k[a,c]", "k[[a,b],c]"} {
			if q.MatchKey(k) {
				keys = append(keys, k)
			}
		}
		for name, groups := range map[string][]string{"1": {"Linux", "DB/prod"}, "2": {"Windows"}} {
			if q.Match(groups, []model.Tag{{Name: "os", Value: groups[0]}}, []model.Tag{{Name: "n" + name}}) {
				items = append(items, name)
			}
		}
		if len(items) == 2 {
			items = []string{"1", "2"}
		}
		if got := strings.Join(keys, " "); got != wantKeys || fmt.Sprint(items) != wantItems {
			t.Errorf("%s: keys %s, items %v; want %s, %s", key, got, items, wantKeys, wantItems)
		}
	}
	f("*", "k", "k", "[1 2]")
	f("*", "k[*]", "k[a]", "[1 2]")
	f("*", "k[*,c]", "k[a,c] k[[a,b],c]", "[1 2]")
	f("h", `k[a,*]?[group="DB"]`, `k["a",b] k[a,c]`, "[1]")
	f("*", `k?[group<>"Linux" and tag="os:Windows"]`, "k", "[2]")
	f("*", `k?[not (tag="n1" or tag="os:DB")]`, "k", "[2]")
	f("*", `k?[tag="os"]`, "k", "[1 2]")
	f("*", `k?[host="x"]`, `column 1: expected group or tag in a filter, found 'h'`, "")
	f("*", `k?[group="x" xor tag="y"]`, `column 11: expected and, or or ] in a filter, found 'x'`, "")
	f("*", `k?[group>"x"]`, `column 6: expected = or <> in a filter, found '>'`, "")
	f("*", `k?[`+strings.Repeat(`tag="a" or `, 40)+`tag="a"]`, `column 187: expected at most 32 conditions in a filter`, "")
	q, err := ParseQuery(Ref{"*", "k"})
	if err != nil || !q.MatchHost("any") || q.AnyKey() || q.HasFilter() {
		t.Errorf("%+v %v", q, err)
	}
}

func FuzzQuery(f *testing.F) {
	f.Add(`k[a,"b",[c,d]]`, `k[*,b,*]?[group="x" and not tag<>"a:b"]`)
	f.Fuzz(func(t *testing.T, key, pattern string) {
		q, err := ParseQuery(Ref{"*", pattern})
		if err != nil {
			return
		}
		if !q.HasFilter() && !q.MatchKey(q.Key) {
			t.Fatalf("%q does not match itself", pattern)
		}
		q.MatchKey(key)
		q.Match([]string{key}, []model.Tag{{Name: key}})
	})
}

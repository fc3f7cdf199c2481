package expr

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"tidemark/model"
)

// noValues has no value of any item.
type noValues struct{}

func (noValues) Last(context.Context, model.ItemID, int, int64, *Sample) (bool, error) {
	return false, nil
}

func (noValues) First(context.Context, model.ItemID, Range, *Sample) (bool, error) {
	return false, nil
}

func (noValues) Summary(_ context.Context, _ model.ItemID, _ Range, _ Aggregate, dst *Summary) error {
	*dst = Summary{}
	return nil
}

func (noValues) Read(_ context.Context, _ model.ItemID, _ Range, dst *model.Columns) error {
	*dst = model.Columns{At: dst.At[:0], Bits: dst.Bits[:0], Arena: dst.Arena[:0]}
	return nil
}

// sliceValues has the values of one batch, found by plain search.
type sliceValues struct {
	batch *model.Batch
	err   error
}

func (v sliceValues) in(item model.ItemID, r Range) (model.Columns, error) {
	c := model.Columns{Item: item, Arena: v.batch.Arena}
	for i := range v.batch.Items {
		if v.batch.Items[i] == item && v.batch.At[i] < r.To && (r.Count > 0 || v.batch.At[i] >= r.From) {
			c.Type = v.batch.Types[i]
			c.At = append(c.At, v.batch.At[i])
			c.Bits = append(c.Bits, v.batch.Bits[i])
		}
	}
	if r.Count > 0 && len(c.At) > r.Count {
		c.At, c.Bits = c.At[len(c.At)-r.Count:], c.Bits[len(c.Bits)-r.Count:]
	}
	return c, v.err
}

func sampleAt(c *model.Columns, i int) Sample {
	s := Sample{At: c.At[i], Type: c.Type, Bits: c.Bits[i]}
	if c.Type.InArena() {
		s.Text = c.Bytes(i)
	}
	return s
}

func (v sliceValues) Last(_ context.Context, item model.ItemID, n int, at int64, dst *Sample) (bool, error) {
	c, err := v.in(item, Range{To: at + 1, Count: n})
	if err != nil || len(c.At) < n {
		return false, err
	}
	*dst = sampleAt(&c, 0)
	return true, nil
}

func (v sliceValues) First(_ context.Context, item model.ItemID, r Range, dst *Sample) (bool, error) {
	c, err := v.in(item, r)
	if err != nil || len(c.At) == 0 {
		return false, err
	}
	*dst = sampleAt(&c, 0)
	return true, nil
}

func (v sliceValues) Summary(_ context.Context, item model.ItemID, r Range, _ Aggregate, dst *Summary) error {
	c, err := v.in(item, r)
	*dst = Summary{Min: math.Inf(1), Max: math.Inf(-1)}
	for i := range c.At {
		dst.Count++
		if c.Type.Numeric() {
			f := c.Float(i)
			dst.Sum += f
			dst.Min, dst.Max = min(dst.Min, f), max(dst.Max, f)
		}
	}
	return err
}

func (v sliceValues) Read(_ context.Context, item model.ItemID, r Range, dst *model.Columns) error {
	c, err := v.in(item, r)
	*dst = c
	return err
}

const second = int64(time.Second)

// history has floats in item 1, unsigned integers in 2, text in 3, log lines in 4, nothing in 5 (float), nearly the largest integer in 6; values every
// 10 s, the newest at 1000 s.
func historyBatch() *model.Batch {
	b := model.NewBatch()
	for i, v := range []float64{1.5, 2.5, -3, 4, 4} {
		at := (960 + 10*int64(i)) * second
		b.AppendFloat(1, at, v)
		b.AppendUint(2, at, []uint64{10, 20, 5, 15, math.MaxUint64}[i])
		b.AppendString(3, at, model.Text, []string{"alpha", "beta", "beta", "Gamma ray", "delta 7"}[i])
		b.AppendUint(6, at, math.MaxUint64-1)
		b.AppendLog(4, at, model.Log{Severity: uint32(i), EventID: uint32(100 + i), Source: "kernel", Text: []string{"ok", "ok", "ERROR x", "ok", "warn"}[i]})
	}
	return b
}

var testItems = []model.ValueType{model.Float, model.Uint, model.Text, model.LogEntry, model.Float, model.Uint}

// evaluateText evaluates with /h/f, /h/u, /h/t, /h/l, /h/none, /h/near; /h/gone is missing and /h/bad unsupported.
func evaluateText(t *testing.T, values Values, text string) (Result, string) {
	t.Helper()
	e, err := Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	items := make([]Item, len(e.Refs))
	for i, ref := range e.Refs {
		n := strings.Index("f u t l none", ref.Key)
		switch ref.Key {
		case "gone":
			items[i] = Item{Missing: true}
		case "bad":
			items[i] = Item{ID: 1, Type: model.Float, Unsupported: true}
		case "none":
			items[i] = Item{ID: 5, Type: model.Float, Since: 900 * second}
		case "near":
			items[i] = Item{ID: 6, Type: model.Uint, NewestAt: 1000 * second}
		default:
			id := model.ItemID(n/2 + 1)
			items[i] = Item{ID: id, Type: testItems[id-1], NewestAt: 1000 * second}
		}
	}
	m := Machine{Values: values, Zone: time.UTC}
	r := m.Evaluate(t.Context(), e.Program, items, Moment{At: 1000 * second, Now: 1001 * second})
	if r.IsText {
		r.Text = append([]byte(nil), r.Text...)
	}
	return r, e.Program.FailureText(r.Failure, e.Refs)
}

func TestEvaluate_numbers(t *testing.T) {
	values := sliceValues{batch: historyBatch()}
	for text, want := range map[string]float64{
		// Operators and their priorities.
		"1+2*3": 7, "(1+2)*3": 9, "2-3-4": -5, "8/4/2": 1, "-2+3": 1, "--2": 2, "2*-3": -6, "1+2=3": 1, "1<2=1": 1, "not 0": 1, "not 5": 0,
		"not 0=1": 1, "not 1=1": 0, "-1<0": 1, "1 or 0 and 0": 1, "(1 or 0) and 0": 0, "3>2 and 2>1": 1, "1<>2": 1, "2>=2": 1, "2<=1": 0,
		"0.1+0.2=0.3": 1, "1=1.0000001": 0, "1e3=1000": 1, "1K": 1024, "1.5M": 1.5 * 1048576, "1G": 1 << 30, "2T": 2 << 40,
		"5m": 300, "2h": 7200, "1d": 86400, "1w": 604800, "10s": 10, ".5": .5, "1E-2": 0.01,
		`"a"="a"`: 1, `"a"<>"a"`: 0, `"a"="b"`: 0, `"10"=10`: 1, `"1K"=1024`: 1, `"a\"\\"="a\"\\"`: 1,
		// Functions of items.
		"last(/h/f)": 4, "last(/h/f,#3)": -3, "last(/h/f,#1:now-20s)": -3, "last(/h/u)": math.MaxUint64, "first(/h/f,25s)": -3,
		"avg(/h/f,#5)": 1.8, "avg(/h/f,21s)": 5.0 / 3, "avg(/h/f,20s)": 4, "min(/h/f,1m)": -3, "max(/h/f,1m)": 4, "sum(/h/f,1m)": 9,
		"avg(/h/f,10s:now-10s)": 4, "avg(/h/f,#2:now-20s)": -0.25, "max(/h/u,#1)": math.MaxUint64,
		"count(/h/f,1m)": 5, "count(/h/f,#3)": 3, "count(/h/none,1m)": 0, "count(/h/f,1m,gt,2)": 3, `count(/h/f,1m,"eq","4")`: 2,
		"count(/h/f,1m,ne,4)": 3, "count(/h/f,1m,ge,2.5)": 3, "count(/h/f,1m,lt,0)": 1, "count(/h/f,1m,le,1.5)": 2, "count(/h/f,1m,,4)": 2,
		"count(/h/u,1m,bitand,4)": 4, `count(/h/u,1m,"bitand","4/6")`: 2, `count(/h/f,1m,"like",".5")`: 2, `count(/h/t,1m,,"a")`: 5,
		`count(/h/t,1m,"eq","beta")`: 2, `count(/h/t,1m,"ne","beta")`: 3, `count(/h/t,1m,"iregexp","^g")`: 1, `count(/h/t,1m,"regexp","^g")`: 0,
		`count(/h/t,1m,"regexp","(?=d)delta")`: 1, `find(/h/t,,"like","delta")`: 1, `find(/h/t,,"like","beta")`: 0, `find(/h/t,1m,"like","beta")`: 1,
		`find(/h/t,#5,"eq","alpha")`: 1, "find(/h/f)": 1, "find(/h/none)": 0, `find(/h/l,1m,"like","ERROR")`: 1, `find(/h/l,,"like","ERROR")`: 0,
		"change(/h/f)": 0, "change(/h/u)": math.MaxUint64 - 15, "change(/h/t)": 1, "change(/h/l)": 1, "abs(change(/h/f))": 0,
		"nodata(/h/f,5s)": 0, "nodata(/h/f,1s)": 1, "nodata(/h/bad,60)": 1, "nodata(/h/none,100)": 1,
		"fuzzytime(/h/u,60)": 0, "changecount(/h/f,1m)": 3, "changecount(/h/f,1m,inc)": 2, "changecount(/h/f,1m,\"dec\")": 1, "changecount(/h/t,1m)": 3,
		"percentile(/h/f,1m,50)": 2.5, "percentile(/h/f,1m,0)": -3, "percentile(/h/f,1m,100)": 4, "percentile(/h/f,1m,81)": 4,
		"countunique(/h/f,1m)": 4, "countunique(/h/t,1m)": 4, "countunique(/h/f,1m,gt,0)": 3, "sumofsquares(/h/f,#2)": 32, "varpop(/h/f,#3)": 98.0 / 9,
		"stddevpop(/h/f,#2)": 0, "varsamp(/h/f,#3)": 49.0 / 3, "mad(/h/f,#3)": 0, "monoinc(/h/f,#3)": 1, "monoinc(/h/f,#3,strict)": 0, "monodec(/h/f,#2)": 1,
		"logseverity(/h/l)": 4, "logeventid(/h/l,,\"^10\")": 1, "logsource(/h/l,,\"disk\")": 0, "logsource(/h/l,#2,\"kern\")": 1,
		`last(/h/t,#5)="alpha"`: 1, `last(/h/t)<>"x"`: 1, "length(last(/h/t,#2))": 9,
		// Other functions.
		"abs(-3)": 3, "ceil(1.2)": 2, "floor(-1.2)": -2, "round(2.345,2)": 2.35, "round(-2.5,0)": -3, "truncate(2.349,2)": 2.34, "min(3,1,2)": 1,
		"max(3,1,2)": 3, "sum(1,2,3)": 6, "avg(1,2)": 1.5, "between(5,1,5)": 1, "between(6,1,5)": 0, "in(5,1,5)": 1, "in(\"a\",\"b\",\"a\")": 1,
		"in(\"5\",5)": 1, "in(\"a\",5)": 0, "mod(7,4)": 3, "power(2,10)": 1024, "sqrt(9)": 3, "signum(-4)": -1, "cbrt(27)": 3, "bitand(12,10)": 8,
		"bitor(12,10)": 14, "bitand(last(/h/u),3)": 3, "bitrshift(last(/h/u),1)": math.MaxInt64,
		// Unsigned integers that are one float apart by less than a float can tell.
		"last(/h/u)=last(/h/near)": 0, "last(/h/u)<>last(/h/near)": 1, "last(/h/near)<last(/h/u)": 1, "last(/h/u)<=last(/h/near)": 0, "last(/h/u)=last(/h/u)": 1,
		"last(/h/u)>=bitnot(0)": 1, "bitnot(0)=last(/h/u)": 1, "bitnot(1)=last(/h/u)": 0, "bitxor(12,10)": 6, "bitlshift(1,4)": 16, "bitrshift(16,2)": 4, "length(\"äö\")": 2, "bytelength(\"äö\")": 4,
		"bitlength(\"a\")": 8, "ascii(\"A\")": 65, "now()": 1000, "date()": 19700101, "time()": 1640, "dayofweek()": 4, "dayofmonth()": 1,
		"length(concat(\"ab\",3,\"c\"))": 4, "char(65)=\"A\"": 1, `left("abc",2)="ab"`: 1, `right("abc",2)="bc"`: 1, `mid("abcde",2,3)="bcd"`: 1,
		`insert("abcde",2,3,"X")="aXe"`: 1, `trim("  a ")="a"`: 1, `ltrim("xxa","x")="a"`: 1, `rtrim("axx","x")="a"`: 1, `repeat("ab",3)="ababab"`: 1,
		`replace("aXbX","X","-")="a-b-"`: 1,
	} {
		r, failure := evaluateText(t, values, text)
		if failure != "" || r.IsText || math.Abs(r.Value-want) > 1e-12*max(1, math.Abs(want)) {
			t.Errorf("%s = %v %q (%s), want %v", text, r.Value, r.Text, failure, want)
		}
	}
}

// TestProgram_Timer: the functions that are asked by the clock besides. fuzzytime is asked with new values alone.
func TestProgram_Timer(t *testing.T) {
	for text, want := range map[string]bool{
		"nodata(/h/f,60)": true, "date()=1": true, "dayofmonth()=1": true, "dayofweek()=1": true, "time()=1": true, "now()=1": true, "trendavg(/h/f,1h:now/h)": true,
		"fuzzytime(/h/u,60)": false, "last(/h/f)": false, "avg(/h/f,1m)": false,
	} {
		e, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if e.Program.Timer() != want {
			t.Errorf("%s is asked by the clock: %v, want %v", text, !want, want)
		}
		for i := range e.Program.Funcs {
			if f := &e.Program.Funcs[i]; f.Timer() != want {
				t.Errorf("the function of %s changes by the clock: %v, want %v", text, !want, want)
			}
		}
	}
}

func TestEvaluate_failures(t *testing.T) {
	values := sliceValues{batch: historyBatch()}
	for text, want := range map[string]string{
		"1/0":                   "division by zero",
		"1 or 1/0":              "division by zero",
		"1 or last(/h/gone)":    "item /h/gone does not exist",
		"last(/h/bad)>1":        "last(/h/bad): the item is not supported",
		"avg(/h/none,5m)>1":     "avg(/h/none,5m): not enough values in the period",
		"last(/h/f,#9)":         "last(/h/f,#9): not enough values in the period",
		"avg(/h/t,5m)":          "avg(/h/t,5m): the function cannot use values of the item's type",
		"count(/h/t,5m,gt,5)":   "count(/h/t,5m,gt,5): the function cannot use values of the item's type",
		"nodata(/h/none,5m)=1":  "nodata(/h/none,5m): the server or the item started less than the period ago",
		`"abc"+1`:               "expected a number, found a text that is none",
		`"abc">1`:               "expected a number, found a text that is none",
		`last(/h/t)=5`:          "expected a number, found a text that is none",
		"sqrt(-1)":              "a function got a value outside of what it is defined for",
		"log(0)":                "a function got a value outside of what it is defined for",
		"bitand(-1,1)":          "a function got a value outside of what it is defined for",
		"power(10,400)":         "a function got a value outside of what it is defined for",
		"{$X}>1":                "expected a number, found a text that is none",
		"varsamp(/h/f,#1)":      "varsamp(/h/f,#1): not enough values in the period",
		"skewness(/h/f,#2)":     "skewness(/h/f,#2): a function got a value outside of what it is defined for",
		"trendavg(/h/f,1h:now)": "",
	} {
		if want == "" {
			if _, err := Parse(text); err == nil {
				t.Errorf("%s was taken", text)
			}
			continue
		}
		if _, failure := evaluateText(t, values, text); failure != want {
			t.Errorf("%s fails with %q, want %q", text, failure, want)
		}
	}
	for err, want := range map[error]string{
		ErrTooOld: "last(/h/f): " + ErrTooOld.Error(), ErrTooMany: "last(/h/f): " + ErrTooMany.Error(),
		errors.New("disk"): "last(/h/f): the history could not be read",
	} {
		if _, failure := evaluateText(t, sliceValues{batch: values.batch, err: err}, "last(/h/f)"); failure != want {
			t.Errorf("error %v gives %q, want %q", err, failure, want)
		}
	}
}

// TestEvaluate_unknown is Zabbix's table of operators with unknown operands (U stands for an unsupported item).
func TestEvaluate_unknown(t *testing.T) {
	for text, want := range map[string]string{
		"U": "U", "not U": "U", "-U": "U", "U+1": "U", "1-U": "U", "U*0": "U", "U/2": "U", "U=1": "U", "1<>U": "U", "U>1": "U", "1<=U": "U",
		"1 or U": "1", "U or 1": "1", "0 or U": "U", "U or 0": "U", "1 and U": "U", "U and 1": "U", "0 and U": "0", "U and 0": "0",
		"U and U": "U", "U or U": "U", "5 or U": "1", "abs(U)": "U", "min(1,U)": "U", "(U and 0) or 1": "1", "not (0 and U)": "1",
	} {
		expression := strings.ReplaceAll(text, "U", "last(/h/bad)")
		r, failure := evaluateText(t, sliceValues{batch: historyBatch()}, expression)
		got := "U"
		if failure == "" {
			got = string(appendNumber(nil, model.Float, math.Float64bits(r.Value)))
		}
		if got != want {
			t.Errorf("%s = %s, want %s", text, got, want)
		}
	}
}

func TestWindow_At(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 30, 14, 35, 20, 500, berlin) // Monday, the day after summer time began
	// The moment behind which the period begins, and its end.
	for text, want := range map[string]string{
		"5m":               "2026-03-30T14:30:20 2026-03-30T14:35:20",
		"1h:now-1h":        "2026-03-30T12:35:20 2026-03-30T13:35:20",
		"1h:now/h":         "2026-03-30T13:00:00 2026-03-30T14:00:00",
		"1d:now/d":         "2026-03-28T23:00:00 2026-03-30T00:00:00",
		"1h:now-1d":        "2026-03-29T13:35:20 2026-03-29T14:35:20",
		"1w:now/w":         "2026-03-22T23:00:00 2026-03-30T00:00:00",
		"1h:now/M-1M":      "2026-01-31T23:00:00 2026-02-01T00:00:00",
		"1h:now/y":         "2025-12-31T23:00:00 2026-01-01T00:00:00",
		"1h:now/d+1d":      "2026-03-30T23:00:00 2026-03-31T00:00:00",
		"30":               "2026-03-30T14:34:50 2026-03-30T14:35:20",
		"10m:now-1h30m":    "",
		"10m:now-3600+30m": "2026-03-30T13:55:20 2026-03-30T14:05:20",
	} {
		w, problem := parseWindow(text, false)
		if want == "" {
			if problem == "" {
				t.Errorf("%s was taken", text)
			}
			continue
		}
		if problem != "" {
			t.Errorf("%s: %s", text, problem)
			continue
		}
		r := w.At(at.UnixNano(), berlin)
		const layout = "2006-01-02T15:04:05"
		got := time.Unix(0, r.From-1).In(berlin).Format(layout) + " " + time.Unix(0, r.To-1).In(berlin).Format(layout)
		if got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

func TestEvaluate_doesNotAllocate(t *testing.T) {
	e, err := Parse("last(/h/f)>10 and avg(/h/f,5m)>3 or not (1+2*3=min(4,5)) and nodata(/h/f,1m)=0")
	if err != nil {
		t.Fatal(err)
	}
	m := Machine{Values: noValues{}}
	items := make([]Item, len(e.Refs))
	if n := testing.AllocsPerRun(100, func() { m.Evaluate(t.Context(), e.Program, items, Moment{At: 1e18, Now: 1e18}) }); n > 0 {
		t.Errorf("%v allocations an evaluation", n)
	}
}

func BenchmarkEvaluate_last(b *testing.B) {
	e, err := Parse("last(/h/f)>10")
	if err != nil {
		b.Fatal(err)
	}
	m := Machine{Values: noValues{}}
	items := []Item{{ID: 1}}
	row := Row{Item: 1, At: 1e18, Type: model.Float, Bits: math.Float64bits(5)}
	for b.Loop() {
		m.Evaluate(b.Context(), e.Program, items, Moment{At: 1e18, Now: 1e18, Row: row})
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := Parse("last(/load-0001/load.item[17])>10 and avg(/load-0001/load.item[17],5m)>3"); err != nil {
			b.Fatal(err)
		}
	}
}

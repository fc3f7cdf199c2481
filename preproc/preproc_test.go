package preproc

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"tidemark/model"
)

type fakeItems map[model.ItemID]*model.Item

func (f fakeItems) Item(id model.ItemID) (*model.Item, bool) { i, ok := f[id]; return i, ok }

func (f fakeItems) ItemByKey(host model.HostID, key string) (*model.Item, bool) {
	for _, i := range f {
		if i.HostID == host && i.Key == key {
			return i, true
		}
	}
	return nil, false
}

func (f fakeItems) Dependents(id model.ItemID) []*model.Item {
	var list []*model.Item
	for _, k := range slices.Sorted(maps.Keys(f)) {
		if f[k].MasterID == id {
			list = append(list, f[k])
		}
	}
	return list
}

type fakeSink struct{ got []string }

func (f *fakeSink) Put(_ context.Context, b *model.Batch) error {
	for i := range b.Len() {
		f.got = append(f.got, show(b, i))
	}
	b.Finish(nil)
	return nil
}

// show prints a row as type:value.
func show(b *model.Batch, i int) string {
	switch b.Types[i] {
	case model.Uint:
		return "unsigned:" + strconv.FormatUint(b.Bits[i], 10)
	case model.Float:
		return "float:" + strconv.FormatFloat(math.Float64frombits(b.Bits[i]), 'g', -1, 64)
	case model.LogEntry:
		l, err := model.DecodeLog(b.Bytes(i))
		if err != nil {
			return "log:" + err.Error()
		}
		return fmt.Sprintf("log:%d:%s:%s", l.Severity, l.Source, l.Text)
	}
	return b.Types[i].String() + ":" + string(b.Bytes(i))
}

func one(t model.StepType, params ...string) model.Step { return model.Step{Type: t, Params: params} }

// run puts values, one second apart, through the steps of one item and returns what the sink got for each; "-" is nothing.
func run(t *testing.T, vt model.ValueType, steps []model.Step, values ...string) []string {
	t.Helper()
	sink := &fakeSink{}
	p := New(Options{Items: fakeItems{1: {ID: 1, HostID: 1, ValueType: vt, Steps: steps}}, Sink: sink})
	var out []string
	for i, v := range values {
		sink.got = nil
		b := model.NewBatch()
		b.AppendString(1, int64(i+1)*int64(time.Second), model.Raw, v)
		if err := p.Put(context.Background(), b); err != nil {
			t.Fatal(err)
		}
		if len(sink.got) == 0 {
			sink.got = []string{"-"}
		}
		out = append(out, sink.got...)
	}
	return out
}

func TestSteps(t *testing.T) {
	f := func(name string, vt model.ValueType, steps []model.Step, in, want []string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			got := run(t, vt, steps, in...)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("\n got %q\nwant %q", got, want)
			}
		})
	}
	s := func(steps ...model.Step) []model.Step { return steps }
	l := func(v ...string) []string { return v }
	f("no steps, unsigned", model.Uint, nil, l("18446744073709551615", " +7 ", "1.9", "-1", "x"), l("unsigned:18446744073709551615", "unsigned:7", "unsigned:1",
		`unsupported:Value "-1" is not suitable for value type "Numeric (unsigned)".`, `unsupported:Value "x" is not suitable for value type "Numeric (unsigned)".`))
	f("no steps, float", model.Float, nil, l("0.1", "-1e3", "12345678901234567890", "nan", "0x10", ""), l("float:0.1", "float:-1000", "float:1.2345678901234567e+19",
		`unsupported:Value "nan" is not suitable for value type "Numeric (float)".`, `unsupported:Value "0x10" is not suitable for value type "Numeric (float)".`, `unsupported:Value "" is not suitable for value type "Numeric (float)".`))
	f("no steps, text", model.Text, nil, l("a", "\xff"), l("text:a", "text:\uFFFD"))
	f("no steps, log", model.LogEntry, nil, l("line"), l("log:0::line"))
	f("multiplier keeps integers", model.Uint, s(one(model.StepMultiplier, "8")), l("9007199254740993"), l("unsigned:72057594037927944"))
	f("multiplier by a fraction", model.Float, s(one(model.StepMultiplier, "0.5")), l("3"), l("float:1.5"))
	f("change per second", model.Float, s(one(model.StepChangePerSecond)), l("10", "15", "3", "4"), l("-", "float:5", "-", "float:1"))
	f("change per second, unsigned cuts", model.Uint, s(one(model.StepChangePerSecond), one(model.StepMultiplier, "0.5")), l("10", "15"), l("-", "unsigned:2"))
	f("simple change", model.Uint, s(one(model.StepSimpleChange)), l("18446744073709551610", "18446744073709551615", "1", "3"), l("-", "unsigned:5", "-", "unsigned:2"))
	f("trim", model.Text, s(one(model.StepTrim, " x\\n")), l(" xax x\n"), l("text:a"))
	f("regex", model.Text, s(one(model.StepRegex, `(\w+)=(\d+)`, `\2:\1`)), l("ab=12", "none"), l("text:12:ab",
		`unsupported:preprocessing step 1 (regular expression) failed for value "none": "(\\w+)=(\\d+)" does not match`))
	f("regex with look-ahead", model.Text, s(one(model.StepRegex, `a(?=b)`, `\0`)), l("ab"), l("text:a"))
	f("JSONPath", model.Uint, s(one(model.StepJSONPath, "$.a[1].b")), l(`{"a":[0,{"b":18446744073709551615}]}`, `{"a":[0,{"b":7}]}`), l("unsigned:18446744073709551615", "unsigned:7"))
	f("JSONPath list", model.Text, s(one(model.StepJSONPath, "$.a[*].b")), l(`{"a":[{"b":1},{"b":"x"}]}`), l(`text:[1,"x"]`))
	f("JSONPath functions", model.Float, s(one(model.StepJSONPath, "$.a[*].avg()")), l(`{"a":[1,2,"6"]}`), l("float:3"))
	f("JSONPath length", model.Uint, s(one(model.StepJSONPath, "$.a.length()")), l(`{"a":[1,2,6]}`), l("unsigned:3"))
	f("JSONPath first of filter", model.Text, s(one(model.StepJSONPath, `$[?(@.n == "b")].v.first()`)), l(`[{"n":"a","v":1},{"n":"b","v":2}]`), l("text:2"))
	f("in range", model.Float, s(one(model.StepInRange, "0", "10")), l("5", "11"), l("float:5",
		`unsupported:preprocessing step 1 (in range) failed for value "11": the value is above 10`))
	f("in range, value on fail", model.Float, s(model.Step{Type: model.StepInRange, Params: l("0", "10"), OnFail: model.FailSetValue, FailValue: "0"}), l("11"), l("float:0"))
	f("in range, discard on fail", model.Float, s(model.Step{Type: model.StepInRange, Params: l("0", ""), OnFail: model.FailDiscard}), l("-11"), l("-"))
	f("in range, error on fail", model.Float, s(model.Step{Type: model.StepInRange, Params: l("", "10"), OnFail: model.FailSetError, FailValue: "too big"}), l("11"), l("unsupported:too big"))
	f("discard unchanged", model.Uint, s(one(model.StepDiscardUnchanged)), l("1", "1", "2", "1"), l("unsigned:1", "-", "unsigned:2", "unsigned:1"))
	f("discard with heartbeat", model.Uint, s(one(model.StepDiscardHeartbeat, "2s")), l("1", "1", "1", "1"), l("unsigned:1", "-", "unsigned:1", "-"))
	f("an error resets memory", model.Uint, s(one(model.StepDiscardUnchanged), one(model.StepInRange, "0", "5")), l("1", "9", "1"), l("unsigned:1",
		`unsupported:preprocessing step 2 (in range) failed for value "9": the value is above 5`, "unsigned:1"))
	f("boolean, octal, hexadecimal", model.Uint, s(one(model.StepBoolToDecimal)), l("Up", "disabled", "7"), l("unsigned:1", "unsigned:0", "unsigned:1"))
	f("hexadecimal", model.Uint, s(one(model.StepHexToDecimal)), l("FF 01"), l("unsigned:65281"))
	f("replace", model.Text, s(one(model.StepReplace, "a", "b\\n")), l("xax"), l("text:xb\nx"))
	f("JSON error", model.Text, s(one(model.StepCheckJSONError, "$.error")), l(`{"error":"down"}`, `{"ok":1}`, `no json`), l("unsupported:down", `text:{"ok":1}`, "text:no json"))
	f("unknown step", model.Text, s(one(99)), l("a"), l("unsupported:preprocessing step 1 (step type 99): step type 99 is not known"))
}

func TestUnsupportedRow(t *testing.T) {
	sink := &fakeSink{}
	items := fakeItems{
		1: {ID: 1, ValueType: model.Uint},
		2: {ID: 2, ValueType: model.Uint, Steps: []model.Step{{Type: model.StepCheckUnsupported, OnFail: model.FailSetValue, FailValue: "9"}}},
	}
	p := New(Options{Items: items, Sink: sink})
	b := model.NewBatch()
	b.AppendString(1, 1, model.Unsupported, "no such file")
	b.AppendString(2, 1, model.Unsupported, "no such file")
	b.AppendString(3, 1, model.Raw, "unknown item")
	if err := p.Put(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	if want := "[unsupported:no such file unsigned:9]"; fmt.Sprint(sink.got) != want {
		t.Errorf("got %q, want %q", fmt.Sprint(sink.got), want)
	}
}

func TestLogKeepsItsParts(t *testing.T) {
	sink := &fakeSink{}
	p := New(Options{Items: fakeItems{1: {ID: 1, ValueType: model.LogEntry, Steps: []model.Step{one(model.StepTrim, " ")}}}, Sink: sink})
	b := model.NewBatch()
	b.AppendLog(1, 1, model.Log{Severity: 3, Source: "app", Text: " hello "})
	if err := p.Put(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	if want := "[log:3:app:hello]"; fmt.Sprint(sink.got) != want {
		t.Errorf("got %q, want %q", fmt.Sprint(sink.got), want)
	}
}

func TestFutureValueGetsItsArrival(t *testing.T) {
	arrived := time.Now().UnixNano()
	var at []int64
	ahead := 3600.0
	sink := sinkFunc(func(b *model.Batch) {
		at = append(at, b.At...)
		if b.Len() == 2 && b.Float(1) != ahead {
			t.Errorf("clock item is %v, want %v s ahead", b.Float(1), ahead)
		}
	})
	p := New(Options{Items: fakeItems{1: {ID: 1, HostID: 4, ValueType: model.Uint}, 2: {ID: 2, HostID: 4, Key: ClockKey}}, Sink: sink})
	put := func(when, arrival int64) {
		b := model.NewBatch()
		b.ArrivedAt = arrival
		b.AppendString(1, when, model.Raw, "1")
		if err := p.Put(context.Background(), b); err != nil {
			t.Fatal(err)
		}
	}
	put(arrived+int64(time.Hour), arrived)
	if len(at) != 2 || at[0] != arrived {
		t.Fatalf("times %v, want the arrival and a clock report", at)
	}
	at, ahead = nil, 0
	put(arrived+int64(2*time.Minute), arrived+int64(2*time.Minute))
	if len(at) != 2 {
		t.Fatalf("after a good minute %d rows, want the value and a report of 0", len(at))
	}
}

type sinkFunc func(*model.Batch)

func (f sinkFunc) Put(_ context.Context, b *model.Batch) error { f(b); return nil }

func TestTextLimits(t *testing.T) {
	long := make([]byte, model.MaxTextBytes+10)
	for i := range long {
		long[i] = 'a'
	}
	if got := run(t, model.Text, nil, string(long)); len(got[0]) != len("text:")+model.MaxTextBytes {
		t.Errorf("text kept %d bytes, want %d", len(got[0]), model.MaxTextBytes)
	}
	if got := run(t, model.Character, nil, string(long)); len(got[0]) != len("char:")+maxCharacters {
		t.Errorf("characters kept %d, want %d", len(got[0]), maxCharacters)
	}
}

func FuzzParseNumbers(f *testing.F) {
	for _, s := range []string{"", "0", "-0", "1.5", "18446744073709551616", "1e308", "1e309", "+1", "\"7\"", "00012.50", "999999999999999.9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, ok := ParseFloat([]byte(s)); ok {
			want, err := strconv.ParseFloat(string(trimNumber([]byte(s))), 64)
			if err != nil || math.Float64bits(want) != math.Float64bits(v) {
				t.Errorf("%q: got %v, strconv %v %v", s, v, want, err)
			}
		}
		if u, ok := ParseUint([]byte(s)); ok {
			if want, err := strconv.ParseUint(string(trimNumber([]byte(s))), 10, 64); err == nil && want != u {
				t.Errorf("%q: got %d, want %d", s, u, want)
			}
		}
	})
}

func BenchmarkPut(b *testing.B) {
	p := New(Options{Items: fakeItems{1: {ID: 1, ValueType: model.Float}, 2: {ID: 2, ValueType: model.Uint}}, Sink: sinkFunc(func(*model.Batch) {})})
	batch := model.NewBatch()
	b.ReportAllocs()
	for b.Loop() {
		batch.Reset()
		for range 500 {
			batch.AppendString(1, 1, model.Raw, "1234.56")
			batch.AppendString(2, 1, model.Raw, "123456")
		}
		if err := p.Put(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/value")
}

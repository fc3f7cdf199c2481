package preproc

import (
	"fmt"
	"strings"
	"testing"

	"tidemark/model"
)

// family is a master with dependents on four levels, the last of which is one too many.
func family() fakeItems {
	path := func(p string) []model.Step { return []model.Step{one(model.StepJSONPath, p)} }
	return fakeItems{
		1: {ID: 1, Key: "get", ValueType: model.Text, HasDependents: true},
		2: {ID: 2, MasterID: 1, ValueType: model.Uint, Steps: path("$.a")},
		3: {ID: 3, MasterID: 1, ValueType: model.Text, Steps: path("$.b"), HasDependents: true},
		4: {ID: 4, MasterID: 3, ValueType: model.Text, HasDependents: true},
		5: {ID: 5, MasterID: 4, ValueType: model.Float, Steps: path("$.c"), HasDependents: true},
		6: {ID: 6, MasterID: 5, ValueType: model.Text},
		7: {ID: 7, MasterID: 1, ValueType: model.Text, Steps: []model.Step{{Type: model.StepCheckUnsupported, OnFail: model.FailSetValue, FailValue: "was broken"}, one(model.StepDiscardUnchanged)}},
	}
}

type rowSink struct{ rows []string }

func (f *rowSink) Put(b *model.Batch) {
	for i := range b.Len() {
		f.rows = append(f.rows, fmt.Sprintf("%d@%d %s", b.Items[i], b.At[i], show(b, i)))
	}
}

func TestDependents(t *testing.T) {
	sink := &rowSink{}
	p := New(Options{Items: family(), Sink: sinkFunc(sink.Put)})
	put := func(vt model.ValueType, text string, want ...string) {
		t.Helper()
		sink.rows = nil
		b := model.NewBatch()
		b.AppendUint(99, 5, 1)
		b.AppendString(1, 5, vt, text)
		if err := p.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(sink.rows) != fmt.Sprint(want) {
			t.Errorf("%s\n got %s\nwant %s", text, strings.Join(sink.rows, "\n     "), strings.Join(want, "\n     "))
		}
	}
	put(model.Raw, `{"a":1,"b":{"c":2.5}}`,
		`1@5 text:{"a":1,"b":{"c":2.5}}`, `2@5 unsigned:1`, `3@5 text:{"c":2.5}`, `4@5 text:{"c":2.5}`, `5@5 float:2.5`, `7@5 text:{"a":1,"b":{"c":2.5}}`)
	// Level 5 has no value of its own here, and 7 saw the same text before.
	put(model.Raw, `{"a":1,"b":{"c":2.5}}`,
		`1@5 text:{"a":1,"b":{"c":2.5}}`, `2@5 unsigned:1`, `3@5 text:{"c":2.5}`, `4@5 text:{"c":2.5}`, `5@5 float:2.5`)
	put(model.Unsupported, "down", "1@5 unsupported:down", "2@5 unsupported:down", "3@5 unsupported:down", "4@5 unsupported:down", "5@5 unsupported:down",
		"7@5 text:was broken")
}

func TestDependentsGetTheWholeText(t *testing.T) {
	sink := &rowSink{}
	items := fakeItems{
		1: {ID: 1, ValueType: model.Character, HasDependents: true},
		2: {ID: 2, MasterID: 1, ValueType: model.Uint, Steps: []model.Step{one(model.StepRegex, "n=(.)$", `\1`)}},
	}
	p := New(Options{Items: items, Sink: sinkFunc(sink.Put)})
	b := model.NewBatch()
	b.AppendString(1, 1, model.Raw, strings.Repeat("x", model.MaxTextBytes)+"n=7")
	if err := p.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if len(sink.rows) != 2 || sink.rows[1] != "2@1 unsigned:7" {
		t.Errorf("%d rows, last %s", len(sink.rows), sink.rows[len(sink.rows)-1])
	}
}

// TestDiscardedMaster checks that nothing reaches dependents when the master yields no value.
func TestDiscardedMaster(t *testing.T) {
	sink := &rowSink{}
	items := fakeItems{
		1: {ID: 1, ValueType: model.Text, HasDependents: true, Steps: []model.Step{one(model.StepDiscardUnchanged)}},
		2: {ID: 2, MasterID: 1, ValueType: model.Text},
	}
	p := New(Options{Items: items, Sink: sinkFunc(sink.Put)})
	b := model.NewBatch()
	for range 3 {
		b.AppendString(1, 1, model.Raw, "a")
	}
	if err := p.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(sink.rows); got != "[1@1 text:a 2@1 text:a]" {
		t.Error(got)
	}
}

// BenchmarkDependents compares 300 dependents of one page with the same work without a shared parse.
func BenchmarkDependents(b *testing.B) {
	var page strings.Builder
	page.WriteString("{")
	for i := range 300 {
		if i > 0 {
			page.WriteByte(',')
		}
		fmt.Fprintf(&page, `"disk%d":{"read":%d,"write":%d}`, i, i, i*2)
	}
	page.WriteString("}")
	items := fakeItems{1: {ID: 1, ValueType: model.Text, HasDependents: true}}
	list := make([]*model.Item, 300)
	for i := range list {
		list[i] = &model.Item{ID: model.ItemID(i + 2), MasterID: 1, ValueType: model.Uint, Steps: []model.Step{one(model.StepJSONPath, fmt.Sprintf("$.disk%d.read", i))}}
	}
	p := New(Options{Items: listed{items, list}, Sink: sinkFunc(func(*model.Batch) {})})
	batch := model.NewBatch()
	b.ReportAllocs()
	for b.Loop() {
		batch.Reset()
		batch.AppendString(1, 1, model.Raw, page.String())
		if err := p.Put(b.Context(), batch); err != nil || batch.Len() != 301 {
			b.Fatal(err, batch.Len())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/300, "ns/dependent")
}

type listed struct {
	fakeItems
	list []*model.Item
}

func (l listed) Dependents(model.ItemID) []*model.Item { return l.list }

package preproc

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidemark/model"
)

// slowScripts yields the value doubled after a second; the value "none" yields nothing, "bad" fails.
type slowScripts struct{}

func (slowScripts) Run(source string, value []byte) ([]byte, error) {
	time.Sleep(time.Second)
	switch string(value) {
	case "none":
		return nil, nil
	case "bad":
		return nil, errors.New("no")
	}
	return []byte(source + string(value) + string(value)), nil
}

func TestSlowScriptHoldsUpNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		start := time.Now()
		sink := sinkFunc(func(b *model.Batch) {
			mu.Lock()
			defer mu.Unlock()
			for i := range b.Len() {
				got = append(got, fmt.Sprintf("%ds %d@%d %s", int(time.Since(start).Seconds()), b.Items[i], b.At[i], show(b, i)))
			}
			b.Finish(nil)
		})
		items := fakeItems{
			1: {ID: 1, ValueType: model.Text},
			2: {ID: 2, ValueType: model.Text, HasDependents: true, Steps: []model.Step{one(model.StepJavaScript, "s"), one(model.StepTrim, " ")}},
			3: {ID: 3, MasterID: 2, ValueType: model.Text},
			4: {ID: 4, ValueType: model.Text, Steps: []model.Step{one(model.StepJavaScript, "s")}},
			5: {ID: 5, ValueType: model.Text, HasDependents: true},
			6: {ID: 6, MasterID: 5, ValueType: model.Text, Steps: []model.Step{one(model.StepJavaScript, "d")}},
		}
		p := New(Options{Items: items, Sink: sink, Scripts: slowScripts{}})
		b := model.NewBatch()
		done := model.NewCompletion()
		b.Done = append(b.Done, done)
		b.AppendString(2, 1, model.Raw, "a")
		b.AppendString(2, 2, model.Raw, "none")
		b.AppendString(2, 3, model.Raw, "bad")
		b.AppendString(1, 1, model.Raw, "x")
		b.AppendString(4, 1, model.Raw, "c")
		b.AppendString(5, 1, model.Raw, "m")
		if err := p.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		select {
		case <-done.Done():
			t.Error("done before the scripts are")
		default:
		}
		_ = p.Close()
		<-done.Done()
		slices.Sort(got)
		want := []string{
			"0s 1@1 text:x", "0s 5@1 text:m", "1s 2@1 text:saa", "1s 3@1 text:saa", "1s 4@1 text:scc", "1s 6@1 text:dmm",
			`3s 2@3 unsupported:preprocessing step 1 (JavaScript) failed for value "bad": no`,
			`3s 3@3 unsupported:preprocessing step 1 (JavaScript) failed for value "bad": no`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestScriptsOff(t *testing.T) {
	yields(t, model.Text, one(model.StepJavaScript, "return 1"), "a", "unsupported:preprocessing step 1 (JavaScript): scripts are switched off on this server")
	yields(t, model.Text, one(model.StepJavaScript), "a", "unsupported:preprocessing step 1 (JavaScript): the script is empty")
}

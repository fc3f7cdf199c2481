package preproc

import (
	"strings"
	"testing"
	"time"

	"tidemark/model"
)

// takenRules keeps the reasons that discovery rules are given.
type takenRules struct{ reasons []string }

func (r *takenRules) Take(_ *model.Item, _ []byte, reason string, _ []*model.Completion) {
	r.reasons = append(r.reasons, reason)
}

// Whatever way a reason comes, of a check, an agent, a step or a master item, people see the macro and not its value.
func TestPut_conceals(t *testing.T) {
	secret := &model.Collect{Secrets: []model.Macro{{Name: "{$PW}", Value: "hunter2", Secret: true}}}
	step := func(kind model.StepType, params ...string) []model.Step {
		return []model.Step{{Type: kind, Params: params}}
	}
	rules, sink := &takenRules{}, &fakeSink{}
	p := New(Options{Rules: rules, Sink: sink, Items: fakeItems{
		1: {ID: 1, HostID: 1, ValueType: model.Float, Collect: secret},
		2: {ID: 2, HostID: 1, ValueType: model.Float, Collect: secret, Remote: true, Steps: step(model.StepMultiplier, "2")},
		3: {ID: 3, HostID: 1, ValueType: model.Text, Collect: secret, Steps: step(model.StepRegex, "of hunter2 (.*)", `\1`)},
		4: {ID: 4, HostID: 1, ValueType: model.Text, Collect: secret, Steps: step(model.StepRegex, "(hunter2", `\1`)},
		5: {ID: 5, HostID: 1, ValueType: model.Text, Collect: secret, RuleID: 9},
		6: {ID: 6, HostID: 1, Key: "master", ValueType: model.Text, Collect: secret, HasDependents: true},
		7: {ID: 7, HostID: 1, ValueType: model.Text, MasterID: 6, Steps: step(model.StepTrim, " ")},
		8: {ID: 8, HostID: 1, ValueType: model.Text, Steps: step(model.StepRegex, "hunter2", `\1`)},
	}})
	const reason = `Get "http://x/?key=hunter2": refused`
	b := model.NewBatch()
	b.AppendString(1, 1, model.Raw, "hunter2")
	b.AppendString(1, 2, model.Unsupported, reason)
	b.AppendString(2, 1, model.Unsupported, reason)
	b.AppendString(3, 1, model.Raw, "other")
	b.AppendString(3, 2, model.Raw, "hunter2 "+strings.Repeat("x", 50)+"hunter2")
	b.AppendString(4, 1, model.Raw, "other")
	b.AppendString(5, 1, model.Unsupported, reason)
	b.AppendString(6, 1, model.Unsupported, reason)
	b.AppendString(8, 1, model.Raw, "other")
	if err := p.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	const shown = `Get "http://x/?key={$PW}": refused`
	want := []string{
		`Value "{$PW}" is not suitable for value type "Numeric (float)".`, shown, shown,
		`preprocessing step 1 (regular expression) failed for value "other": "of {$PW} (.*)" does not match`,
		`preprocessing step 1 (regular expression) failed for value "{$PW} ` + strings.Repeat("x", 50) + `{$PW}…": "of {$PW} (.*)" does not match`,
		"preprocessing step 1 (regular expression): " + errUnreadable.Error(), shown,
		`preprocessing step 1 (regular expression) failed for value "other": "hunter2" does not match`, // no secret here: its own text has it
		shown,
	}
	for i, got := range sink.got {
		if i >= len(want) || got != model.Unsupported.String()+":"+want[i] {
			t.Errorf("row %d: %s", i, got)
		}
	}
	if len(sink.got) != len(want) {
		t.Errorf("%d rows, want %d", len(sink.got), len(want))
	}
	if len(rules.reasons) != 1 || rules.reasons[0] != shown {
		t.Errorf("the rule is given %q", rules.reasons)
	}
}

func TestTry_conceals(t *testing.T) {
	item := &model.Item{
		ID: 1, ValueType: model.Float, Collect: &model.Collect{Secrets: []model.Macro{{Name: "{$PW}", Value: "hunter2"}}},
		Steps: []model.Step{{Type: model.StepRegex, Params: []string{"of hunter2 (.*)", `\1`}}},
	}
	got := Try(item, nil, TrialInput{Text: "other", At: time.Unix(1, 0)})
	if want := `preprocessing step 1 (regular expression) failed for value "other": "of {$PW} (.*)" does not match`; got.Error != want || got.Steps[0].Error != `"of {$PW} (.*)" does not match` {
		t.Errorf("found %+v, want %s", got, want)
	}
}

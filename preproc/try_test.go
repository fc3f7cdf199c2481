package preproc

import (
	"testing"
	"time"

	"tidemark/model"
)

func TestTry(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	steps := func(list ...model.Step) *model.Item {
		return &model.Item{ID: 1, ValueType: model.Float, Steps: list}
	}
	jsonPath := model.Step{Type: model.StepJSONPath, Params: []string{"$.a"}}
	rate := model.Step{Type: model.StepChangePerSecond}
	item := steps(jsonPath, rate, model.Step{Type: model.StepMultiplier, Params: []string{"8"}})
	got := Try(item, nil, TrialInput{Text: `{"a":10}`, At: at}, TrialInput{Text: `{"a":30}`, At: at.Add(10 * time.Second)})
	if got.Value != "16" || len(got.Steps) != 3 || got.Steps[0].Value != "30" || got.Steps[1].Value != "2" || got.Steps[2].Name != "multiplier" {
		t.Errorf("steps %+v", got)
	}
	if got = Try(item, nil, TrialInput{Text: `{"a":10}`, At: at}); !got.Discarded || len(got.Steps) != 2 || !got.Steps[1].Discarded {
		t.Errorf("a first value for a rate: %+v", got)
	}
	if got = Try(item, nil, TrialInput{Text: `{}`, At: at}); got.Error == "" || len(got.Steps) != 1 || got.Steps[0].Error == "" {
		t.Errorf("a path that is not there: %+v", got)
	}
	jsonPath.OnFail, jsonPath.FailValue = model.FailSetValue, "7"
	if got = Try(steps(jsonPath), nil, TrialInput{Text: `{}`, At: at}); got.Value != "7" || got.Steps[0].Error == "" || got.Steps[0].Value != "7" {
		t.Errorf("an action on failure: %+v", got)
	}
	unsupported := model.Step{Type: model.StepCheckUnsupported, Params: []string{"-1"}, OnFail: model.FailSetValue, FailValue: "0"}
	if got = Try(steps(unsupported), nil, TrialInput{Error: "no route", At: at}); got.Value != "0" || len(got.Steps) != 1 {
		t.Errorf("a failed check: %+v", got)
	}
	if got = Try(steps(), nil, TrialInput{Text: "abc", At: at}); got.Error == "" {
		t.Errorf("a text for a number: %+v", got)
	}
}

func TestCheckSteps(t *testing.T) {
	if at, err := CheckSteps([]model.Step{{Type: model.StepSimpleChange}, {Type: model.StepRegex, Params: []string{"(", "x"}}}, model.Float); at != 1 || err == nil {
		t.Errorf("a broken expression: %d %v", at, err)
	}
	if _, err := CheckSteps([]model.Step{{Type: model.StepMultiplier, Params: []string{"8"}}}, model.Float); err != nil {
		t.Error(err)
	}
}

package confcache

import (
	"testing"
	"time"

	"tidemark/model"
)

// A scenario's macros are expanded and its time is the sum of its steps', each as often as it is tried.
func TestExpander_scenario(t *testing.T) {
	h := &hostBuilder{entry: &entry{host: model.Host{Host: "shop"}}}
	h.macros.levels = []macroLevel{newLevel([]model.Macro{{Name: "{$URL}", Value: "http://a"}, {Name: "{$T}", Value: "20s"}})}
	e := &expander{host: h, item: &model.Item{}}
	from := &model.WebScenario{Attempts: 3, Steps: []model.WebStep{
		{Name: "{HOST.HOST}", URL: "{$URL}/x?{token}", TimeoutText: "{$T}", Form: []model.Pair{{Name: "a", Value: "{$URL}"}}}, {Name: "b", URL: "x", TimeoutText: "1m"},
	}}
	got, all := e.scenario(from)
	if all != 4*time.Minute || got.Steps[0].URL != "http://a/x?{token}" || got.Steps[0].Name != "shop" || got.Steps[0].Timeout != 20*time.Second || got.Steps[0].Form[0].Value != "http://a" {
		t.Errorf("%s %+v", all, got)
	}
	if from.Steps[0].URL != "{$URL}/x?{token}" || from.Steps[0].Form[0].Value != "{$URL}" {
		t.Errorf("the template's scenario was changed: %+v", from)
	}
	for _, text := range []string{"0", "2h", "x", "{$NONE}"} {
		e := &expander{host: h, item: &model.Item{}}
		if e.scenario(&model.WebScenario{Attempts: 1, Steps: []model.WebStep{{Name: "s", TimeoutText: text}}}); len(e.errs) == 0 {
			t.Errorf("the timeout %q is taken", text)
		}
	}
}

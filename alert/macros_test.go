package alert

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"tidemark/model"
)

var update = flag.Bool("update", false, "write testdata anew")

// TestMacros_golden expands the macros of testdata/macros.txt for each kind of message.
func TestMacros_golden(t *testing.T) {
	template, err := os.ReadFile("testdata/macros.txt")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	w.hosts[1] = &model.Host{ID: 1, Host: "db1", Name: "Database 1", Groups: []string{"Linux", "Databases"}, Enabled: true}
	w.triggers[7] = &model.Trigger{ID: 7, HostID: 1, TemplateID: 3, Enabled: true}
	a, err := Open(t.Context(), Options{Store: w, Objects: w, Problems: w, Names: w, Zone: time.UTC, Now: func() time.Time { return time.Unix(1_800_000_000, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	a.plan.url = "https://tidemark.example"
	problem := model.Event{
		ID: 41, TriggerID: 7, HostID: 1, At: 1_799_990_000e9, Problem: true, Severity: model.High, Name: "Disk {x} 91% <full>", OpData: "91 %",
		Tags: []model.Tag{{Name: "scope", Value: "capacity"}, {Name: "env", Value: "prod"}, {Name: "plain"}},
	}
	recovery := problem
	recovery.ID, recovery.At, recovery.Problem, recovery.ProblemID = 42, 1_799_999_000e9, false, 41
	e := &escalation{Escalation: model.Escalation{Problem: problem, ProblemID: 41}}
	action := &compiledAction{Action: &Action{Name: "Tell all"}}
	var out strings.Builder
	for _, o := range []occasion{
		{kind: model.AlertProblem, event: &problem},
		{kind: model.AlertRecovery, event: &recovery, acknowledged: true},
		{kind: model.AlertUpdate, event: &problem, update: &model.ProblemUpdate{At: 1_799_999_500e9, Author: "Ann", Message: "on it", Actions: model.ActionAcknowledge}},
	} {
		o.action, o.escalation, o.now = action, e, a.now()
		texts := a.newTexts(t.Context(), &o)
		subject, body := texts.fill(Text{"{EVENT.SEVERITY}: {EVENT.NAME}", string(template)}, model.AlertTarget{To: "ops@example.com"}, false)
		out.WriteString("== " + o.kind.String() + "\n" + subject + "\n" + body + "\n")
		for _, built := range []bool{false, true} {
			subject, body = texts.fill(builtIn(o.kind), model.AlertTarget{To: "x"}, built)
			out.WriteString("-- built in\n" + subject + "\n" + body + "\n")
		}
	}
	const golden = "testdata/macros.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("differs from %s:\n%s", golden, out.String())
	}
}

func TestExpand_bounds(t *testing.T) {
	long := strings.Repeat("{A}", 10*maxMacros)
	if got := expand(long, 1000, func(string) string { return strings.Repeat("ž", 300) }); len(got) > 1000 {
		t.Errorf("%d bytes, want at most 1000", len(got))
	}
	// The value of a macro is not expanded again.
	if got := expand("{A} {", 100, func(string) string { return "{A}" }); got != "{A} {" {
		t.Errorf("%q", got)
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("{EVENT.NAME} {{ITEM.VALUE}.regsub(\"([0-9]+)\",\"\\1\")} {?last(//k,\"}\")} {{EVENT.ID}.fmtnum(2)} {EVENT.TAGS.\"a b\"}")
	w := newWorld()
	a, err := Open(f.Context(), Options{Store: w, Objects: w, Problems: w, Names: w})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		event := model.Event{ID: 1, Name: text}
		o := occasion{action: &compiledAction{Action: &Action{}}, escalation: &escalation{Escalation: model.Escalation{Problem: event}}, event: &event}
		subject, body := a.newTexts(t.Context(), &o).fill(Text{text, text}, model.AlertTarget{To: text}, true)
		if len(subject) > 512 || len(body) > maxTextBytes {
			t.Errorf("%d and %d bytes", len(subject), len(body))
		}
	})
}

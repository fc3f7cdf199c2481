package alert

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidemark/alert/media"
	"tidemark/model"
)

// remedy is a command on the host of the problem beside a message to somebody.
const remedy = `
media:
  - {name: restart, command: {line: "restart {EVENT.ID}"}}
  - {name: ticket, ticket: true, webhook: {url: "https://tickets.example/api"}, problem: {subject: "P{EVENT.ID}"}, recovery: {subject: "R{EVENT.ID}"}}
receivers:
  - {name: machine, media: [{media: restart, to: host}]}
  - {name: first, media: [{media: ticket, to: first}]}
actions:
  - {name: a, step_duration: 1m, operations: [{receivers: [machine, first]}, {from: 2, receivers: [machine]}]}
`

// A command runs in the steps that name it, and at the recovery only where that names it.
func TestCommand_steps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(1, "Db1")
		p := w.start(t, remedy)
		from := time.Now()
		id := w.problem(7, model.High, "disk")
		p.tell(id)
		after(5 * time.Minute)
		p.tell(w.recovery(id))
		after(time.Hour)
		expectLines(t, w.lines(from), "0 first P1", "0 host Command: restart {EVENT.ID}", "60 host Command: restart {EVENT.ID}", "300 first R1")
		for _, a := range w.alerts {
			if a.Media == "restart" && (a.Macros["{HOST.ID}"] != "1" || a.State != model.AlertSent) {
				t.Errorf("alert %+v", a)
			}
		}
		p.stop()
		p = w.start(t, strings.Replace(remedy, "{from: 2, receivers: [machine]}]", "{from: 2, receivers: [machine]}], recovery: [{receivers: [machine]}]", 1))
		defer p.stop()
		from = time.Now()
		id = w.problem(7, model.High, "disk")
		p.tell(id)
		after(30 * time.Second)
		p.tell(w.recovery(id))
		after(time.Hour)
		expectLines(t, w.lines(from)[4:], "0 first P3", "0 host Command: restart {EVENT.ID}", "30 host Command: restart {EVENT.ID}")
	})
}

// The command that a recovery names runs also when nobody but the machine was told of the problem, and those who are involved are people.
func TestCommand_recoveryAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alone := strings.Replace(remedy, "[machine, first]}, {from: 2, receivers: [machine]}]", "[machine]}]", 1)
		f := func(recovery string, want ...string) {
			t.Helper()
			w := newWorld()
			w.host(1, "Db1")
			p := w.start(t, strings.Replace(alone, "[machine]}]", "[machine]}]"+recovery, 1))
			from := time.Now()
			id := w.problem(7, model.High, "disk")
			p.tell(id)
			after(30 * time.Second)
			p.stop()
			p = w.start(t, "") // what ran is known after a start, too
			p.tell(w.recovery(id))
			after(time.Hour)
			p.stop()
			expectLines(t, w.lines(from), append([]string{"0 host Command: restart {EVENT.ID}"}, want...)...)
		}
		f("")
		f(", recovery: [{involved: true}]")
		f(", recovery: [{receivers: [machine]}]", "30 host Command: restart {EVENT.ID}")
		f(", recovery: [{receivers: [first]}]", "30 first R1")
	})
}

// The process dies at each call of the store and of a sender: no command is given twice, and one of which nobody knows whether it ran says so.
func TestKill_commands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole, _ := story(t, remedy, 0, false)
		for cut := 1; cut <= whole.calls; cut++ {
			for _, after := range []bool{false, true} {
				w, _ := story(t, remedy, cut, after)
				var ids []string
				for _, m := range w.messages() {
					if m.to == commandAddress {
						ids = append(ids, m.id)
					}
				}
				slices.Sort(ids)
				if len(slices.Compact(slices.Clone(ids))) != len(ids) {
					t.Errorf("call %d, after %v: a command was given twice: %v", cut, after, ids)
				}
				sent, unsure := 0, 0
				for _, a := range w.alerts {
					switch {
					case a.Media != "restart":
					case a.State == model.AlertSent:
						sent++
					case a.State == model.AlertFailed && strings.Contains(a.Error, "may have arrived"):
						unsure++
					default:
						t.Errorf("call %d, after %v: command %d ends as %v: %s", cut, after, a.ID, a.State, a.Error)
					}
				}
				if sent+unsure != 3*2 || len(ids) < sent || len(ids) > sent+unsure {
					t.Errorf("call %d, after %v: %d commands given, %d told as run and %d as unsure, want 6", cut, after, len(ids), sent, unsure)
				}
			}
		}
	})
}

// A command that fails is not tried again, and one that could not be begun in time is not run.
func TestCommand_onceAndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(1, "Db1")
		w.refuse = func(string) error { return errors.New("the agent does not answer") }
		p := w.start(t, strings.Replace(remedy, "[machine, first]}, {from: 2, receivers: [machine]}", "[machine]}", 1))
		p.tell(w.problem(7, model.High, "disk"))
		after(30 * time.Second)
		if calls := w.alerts[1].Attempts; calls != 1 || w.alerts[1].State != model.AlertFailed {
			t.Errorf("after a failure: %+v", w.alerts[1])
		}
		if failed, held := p.failed.Get(), p.heldCommands.Get(); failed != 1 || held != 0 {
			t.Errorf("after a failure: %d failed, %d held back", failed, held)
		}
		p.stop()
		w.refuse, w.claiming = nil, 5*time.Second
		p = w.start(t, "")
		p.tell(w.problem(8, model.High, "disk"))
		after(3 * time.Second)
		p.stop()
		time.Sleep(commandAge) //nolint:forbidigo // time of the bubble
		w.claiming = 0
		p = w.start(t, "")
		after(time.Minute)
		p.stop()
		if a := w.alerts[2]; a.State != model.AlertFailed || !strings.Contains(a.Error, "could not be begun within 5m0s") || len(w.messages()) != 0 {
			t.Errorf("after the server was away: %+v, messages %v", a, w.messages())
		}
	})
}

// A command that ran a moment ago for another problem of the host is held back, which is no failure.
func TestCommand_held(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(1, "Db1")
		w.refuse = func(string) error { return fmt.Errorf("not run again: %w", media.ErrHeld) }
		p := w.start(t, strings.Replace(remedy, "[machine, first]}, {from: 2, receivers: [machine]}", "[machine]}", 1))
		defer p.stop()
		p.tell(w.problem(7, model.High, "disk"))
		after(30 * time.Second)
		if a := w.alerts[1]; a.Attempts != 1 || a.State != model.AlertFailed || !strings.Contains(a.Error, "not run again") {
			t.Errorf("the alert is %+v", a)
		}
		if failed, held := p.failed.Get(), p.heldCommands.Get(); failed != 0 || held != 1 {
			t.Errorf("%d failed, %d held back", failed, held)
		}
	})
}

func TestCommand_config(t *testing.T) {
	f := func(from, to, want string) {
		t.Helper()
		w := newWorld()
		a, err := Open(t.Context(), Options{Store: w, Objects: w, Problems: w, Names: w, Zone: time.UTC})
		if err != nil {
			t.Fatal(err)
		}
		c, err := Parse([]byte(strings.Replace(remedy, from, to, 1)))
		if err == nil {
			err = a.Apply(t.Context(), c, true)
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", to, err, want)
		}
		if _, err := a.Test(t.Context(), Test{Media: "restart", To: "host"}); want == "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "tidemark host run")) {
			t.Errorf("a test of a command: %v", err)
		}
	}
	f("", "", "")
	f("restart {EVENT.ID}", "restart {HOST.NAME}", "not expanded in commands")
	f("command: {", "attempts: 3, command: {", "a command is not run again")
	f("to: host", "to: db1", "expected host")
	f("command: {line: \"restart {EVENT.ID}\"}", "command: {line: x}, script: {name: y}", "expected one")
}

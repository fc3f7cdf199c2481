package alert

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidemark/model"
)

// single is a ticket medium, which sends each alert by itself at once, with short texts.
const single = `
media:
  - name: ticket
    ticket: true
    webhook: {url: "https://tickets.example/api"}
    problem: {subject: "P{EVENT.ID} {EVENT.NAME}"}
    recovery: {subject: "R{EVENT.ID} {EVENT.NAME}"}
    update: {subject: "U{EVENT.ID} {EVENT.UPDATE.ACTION} {EVENT.UPDATE.MESSAGE}"}
receivers:
  - {name: first, media: [{media: ticket, to: first}]}
  - {name: second, media: [{media: ticket, to: second}]}
`

func TestEscalation_steps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(1, "Db1")
		p := w.start(t, single+`
actions:
  - name: page
    step_duration: 10m
    operations:
      - {receivers: [first]}
      - {from: 2, to: 3, duration: 5m, receivers: [second], if: not_acknowledged, subject: "step {EVENT.NAME}"}
      - {from: 4, to: -1, receivers: [second], subject: "again"}
    update: [{involved: true}]
`)
		defer p.stop()
		from := time.Now()
		id := w.problem(7, model.High, "disk")
		p.tell(id)
		after(5 * time.Minute)
		expectLines(t, w.lines(from), "0 first P1 disk")
		after(35*time.Minute + time.Second)
		// Step 2 after 10 minutes, 3 after 5 more, 4 after 5 more, then each 10 minutes.
		expectLines(t, w.lines(from), "0 first P1 disk", "600 second step disk", "900 second step disk", "1200 second again", "1800 second again", "2400 second again")
		p.tell(w.recovery(id))
		after(time.Hour)
		lines := w.lines(from)
		expectLines(t, lines[6:], "2401 first R1 disk", "2401 second R1 disk")
	})
}

func TestEscalation_acknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(1, "Db1")
		p := w.start(t, single+`
actions:
  - {name: stops, step_duration: 1m, stop_when_acknowledged: true, operations: [{receivers: [first], to: -1}], update: [{involved: true}]}
  - {name: asks, step_duration: 1m, operations: [{receivers: [second], to: 3, if: not_acknowledged}]}
`)
		defer p.stop()
		from := time.Now()
		id := w.problem(7, model.High, "disk")
		p.tell(id)
		after(90 * time.Second)
		w.mu.Lock()
		w.open[id] = model.Problem{Event: w.open[id].Event, Acknowledged: true}
		w.mu.Unlock()
		if err := p.Updated(t.Context(), []model.StoredUpdate{{
			ProblemUpdate: model.ProblemUpdate{At: time.Now().UnixNano(), Author: "me", Actions: model.ActionAcknowledge | model.ActionMessage, Message: "on it"},
			Problem:       w.open[id],
		}}); err != nil {
			t.Fatal(err)
		}
		after(time.Hour)
		p.tell(w.recovery(id))
		after(time.Second)
		got := w.lines(from)
		count := map[string]int{}
		for _, line := range got {
			count[line]++
		}
		for _, line := range []string{
			"0 first P1 disk", "0 second P1 disk", "60 first P1 disk", "60 second P1 disk", "90 first U1 acknowledged and commented on it", "3690 first R1 disk", "3690 second R1 disk",
		} {
			if count[line] != 1 {
				t.Errorf("%q came %d times", line, count[line])
			}
		}
		if len(got) != 7 {
			t.Errorf("messages: %s", strings.Join(got, "\n"))
		}
	})
}

func TestEscalation_delayAndReceiversWishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(1, "Db1")
		p := w.start(t, `
media: [{name: ticket, ticket: true, webhook: {url: "https://t.example/"}}]
receivers:
  - name: many
    media:
      - {media: ticket, to: all}
      - {media: ticket, to: all}
      - {media: ticket, to: high, severities: [high, disaster]}
      - {media: ticket, to: nights, when: "1-7,00:00-00:01"}
      - {media: ticket, to: off, disabled: true}
actions:
  - {name: a, delay: 5m, operations: [{receivers: [many], subject: "{EVENT.NAME}"}], recovery: []}
  - {name: off, disabled: true, operations: [{receivers: [many]}]}
`)
		defer p.stop()
		from := time.Now()
		short := w.problem(1, model.High, "short")
		p.tell(short, w.problem(2, model.Warning, "warning"))
		after(time.Minute)
		p.tell(w.recovery(short))
		after(time.Hour)
		expectLines(t, w.lines(from), "300 all warning")
		if len(p.escalations) != 1 {
			t.Errorf("%d escalations, want that of the open problem", len(p.escalations))
		}
	})
}

func TestEscalation_maintenanceAndDependencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(1, "Db1", "Databases/Main")
		w.host(2, "Web")
		w.triggers[7] = &model.Trigger{ID: 7, HostID: 1, Enabled: true}
		w.triggers[8] = &model.Trigger{ID: 8, HostID: 2, Enabled: true, DependsOn: []model.TriggerID{9}}
		w.triggers[9] = &model.Trigger{ID: 9, HostID: 2, Enabled: true}
		p := w.start(t, single+`
actions:
  - {name: a, operations: [{receivers: [first]}]}
  - {name: only suppressed, send_suppressed: true, conditions: [{type: suppressed, value: "true"}], operations: [{receivers: [second]}]}
maintenances:
  - {name: night, groups: [Databases], periods: [{every: day, at: "00:00", for: 1h}], no_data: true}
`)
		defer p.stop()
		from := time.Now() // midnight of 2000-01-01
		short, long := w.problem(7, model.High, "short"), w.problem(7, model.High, "long")
		switched := w.problem(9, model.High, "switch")
		p.tell(short, long, switched, w.problem(8, model.High, "behind the switch"))
		if s := p.Suppressions([]model.Problem{{Event: model.Event{HostID: 1}}, {Event: model.Event{HostID: 2}}}); s[0] != (Suppression{"night", from.Add(time.Hour).UnixNano()}) || s[1].Until != 0 {
			t.Errorf("Suppressions = %+v", s)
		}
		if !p.NoData(w.hosts[1]) || p.NoData(w.hosts[2]) {
			t.Error("NoData: want that of host 1 only")
		}
		after(10*time.Minute + 5*time.Second)
		p.tell(w.recovery(short), w.recovery(switched))
		after(2 * time.Hour)
		got := w.lines(from)
		want := map[string]bool{
			"0 second P1 short": true, "0 second P2 long": true, "0 first P3 switch": true, "605 second R1 short": true, "605 first R3 switch": true,
			"630 first P4 behind the switch": true, "3600 first P2 long": true,
		}
		for _, line := range got {
			if !want[line] {
				t.Errorf("unexpected %q", line)
			}
			delete(want, line)
		}
		if len(want) > 0 {
			t.Errorf("missing: %v", want)
		}
	})
}

func TestEscalation_cancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(1, "Db1")
		p := w.start(t, single+`
actions: [{name: a, step_duration: 1m, operations: [{receivers: [first], to: -1}]}]
`)
		defer p.stop()
		from := time.Now()
		p.tell(w.problem(7, model.High, "disk"))
		after(30 * time.Second)
		w.mu.Lock()
		delete(w.triggers, 7)
		clear(w.open)
		w.mu.Unlock()
		after(time.Hour)
		expectLines(t, w.lines(from), "0 first P1 disk", "60 first Not watched any more: disk")
		if len(w.escalations) != 0 {
			t.Errorf("escalations left: %v", w.escalations)
		}
	})
}

// TestFlapping lets a trigger change every 10 seconds for 10 minutes.
func TestFlapping(t *testing.T) {
	const grouped = `
media: [{name: chat, webhook: {url: "https://chat.example/"}}]
receivers: [{name: first, media: [{media: chat, to: room}]}]
actions: [{name: a, flapping: {changes: 4}, operations: [{receivers: [first]}]}]
`
	for _, tt := range []struct {
		name, config     string
		during, atTheEnd int
	}{
		{"chat", grouped, 2, 3},
		// Tickets are opened and closed in pairs: two before the fourth change, which shows the flapping.
		{"ticket", single + "\nactions: [{name: a, flapping: {changes: 4}, operations: [{receivers: [first]}]}]", 3, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.host(1, "Db1")
				p := w.start(t, tt.config)
				defer p.stop()
				from := time.Now()
				for range 30 {
					id := w.problem(7, model.High, "flap")
					p.tell(id)
					after(10 * time.Second)
					p.tell(w.recovery(id))
					after(10 * time.Second)
				}
				if got := w.lines(from); len(got) > tt.during {
					t.Errorf("while it flaps:\n%s", strings.Join(got, "\n"))
				}
				after(time.Hour)
				got := w.lines(from)
				if len(got) > tt.atTheEnd || len(w.escalations) != 0 {
					t.Errorf("at the end:\n%s\nescalations %v", strings.Join(got, "\n"), w.escalations)
				}
				if last := got[len(got)-1]; !strings.Contains(last, "R") {
					t.Errorf("the last message is %q, want the recovery", last)
				}
			})
		})
	}
}

// Somebody who plays the first steps of the README a few times is told each time; the tenth change in ten minutes is one too many.
func TestFlapping_defaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(1, "Example")
		p := w.start(t, single+"\nactions: [{name: a, operations: [{receivers: [first]}]}]")
		defer p.stop()
		from := time.Now()
		for range 5 {
			id := w.problem(7, model.High, "Too warm")
			p.tell(id)
			after(10 * time.Second)
			p.tell(w.recovery(id))
			after(10 * time.Second)
		}
		if got := w.lines(from); len(got) != 9 {
			t.Errorf("%d messages of ten changes, want nine:\n%s", len(got), strings.Join(got, "\n"))
		}
		after(10 * time.Minute)
		if got := w.lines(from); len(got) != 10 || !strings.Contains(got[9], "R9 Too warm") {
			t.Errorf("when it is calm:\n%s", strings.Join(got, "\n"))
		}
	})
}

func TestFlapping_overARestartAndStillAProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(1, "Db1")
		p := w.start(t, single+"\nactions: [{name: a, step_duration: 1h, flapping: {changes: 4}, operations: [{receivers: [first], to: -1}]}]")
		var id model.EventID
		for range 10 {
			id = w.problem(7, model.High, "flap")
			p.tell(id)
			after(10 * time.Second)
			p.stop()
			p = w.start(t, "")
			p.tell(w.recovery(id))
			after(10 * time.Second)
		}
		id = w.problem(7, model.High, "flap")
		p.tell(id)
		after(11 * time.Minute)
		before := len(w.messages())
		if before > 3 {
			t.Errorf("%d messages, want at most 3: %v", before, w.messages())
		}
		after(time.Hour)
		if len(w.messages()) != before+1 {
			t.Errorf("%d messages in an hour of a problem that stays, want the next step", len(w.messages())-before)
		}
		p.tell(w.recovery(id))
		after(time.Second)
		if last := w.messages()[len(w.messages())-1]; !strings.HasPrefix(last.subject, "R") {
			t.Errorf("last message %+v, want the recovery", last)
		}
		p.stop()
	})
}

func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(1, "Db1")
		p := w.start(t, single+"\nactions: [{name: a, operations: [{receivers: [first]}]}]")
		defer p.stop()
		from := time.Now()
		tries := 0
		w.refuse = func(string) error {
			if tries++; tries <= 3 {
				return errors.New("busy")
			}
			return nil
		}
		id := w.problem(7, model.High, "disk")
		p.tell(id)
		after(5 * time.Second)
		p.tell(w.recovery(id)) // must stay behind its problem
		after(time.Hour)
		expectLines(t, w.lines(from), "70 first P1 disk", "70 first R1 disk")
		if a := w.alerts[1]; a.Attempts != 4 || a.State != model.AlertSent || a.Error != "" {
			t.Errorf("alert %+v", a)
		}
		w.refuse = func(string) error { return errors.New("gone") }
		p.tell(w.problem(8, model.High, "lost"))
		after(3 * time.Hour)
		if a := w.alerts[3]; a.Attempts != attempts || a.State != model.AlertFailed || a.Error != "gone" {
			t.Errorf("alert %+v", a)
		}
	})
}

func TestStoreFails_nothingIsSentTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(1, "Db1")
		p := w.start(t, single+"\nactions: [{name: a, operations: [{receivers: [first]}]}]")
		defer p.stop()
		p.tell(w.problem(7, model.High, "one"))
		after(time.Second)
		for i := range 5 {
			w.mu.Lock()
			w.dead = true
			w.mu.Unlock()
			p.tell(w.problem(model.TriggerID(10+i), model.High, fmt.Sprint("more ", i)))
			after(5 * time.Second)
			if err := p.alive(); err == nil {
				t.Error("alive without a store")
			}
			w.mu.Lock()
			w.dead = false
			w.mu.Unlock()
			after(5 * time.Second)
		}
		if len(w.messages()) != 6 {
			t.Errorf("%d messages, want 6", len(w.messages()))
		}
		if err := p.alive(); err != nil {
			t.Errorf("alive: %v", err)
		}
	})
}

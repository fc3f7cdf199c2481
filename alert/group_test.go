package alert

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"tidemark/model"
)

const chat = `
media:
  - {name: chat, webhook: {url: "https://chat.example/"}}
  - {name: mail, mail: {server: "mail.example:25", from: tidemark@example.com}}
receivers: [{name: team, media: [{media: chat, to: room}, {media: mail, to: team@example.com}]}]
actions: [{name: a, step_duration: 10m, operations: [{receivers: [team]}]}]
`

// TestGrouping_thousandProblems lets 1,000 problems come in 30 seconds and go a few minutes later.
func TestGrouping_thousandProblems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for i := range 50 {
			w.host(model.HostID(i+1), fmt.Sprintf("Host%02d", i))
		}
		p := w.start(t, chat)
		defer p.stop()
		var ids []model.EventID
		var urgent []string
		for i := range 1000 {
			trigger := model.TriggerID(i + 1)
			severity := model.Severity(i % 4)
			name := fmt.Sprintf("problem %04d", i)
			if i%10 == 7 {
				severity = model.High + model.Severity(i/10%2)
				urgent = append(urgent, name)
			}
			w.mu.Lock()
			w.triggers[trigger] = &model.Trigger{ID: trigger, HostID: model.HostID(i%50 + 1), Enabled: true}
			w.mu.Unlock()
			id := w.problem(trigger, severity, name)
			ids = append(ids, id)
			p.tell(id)
			if i%100 == 99 {
				after(3 * time.Second)
			}
		}
		after(5 * time.Minute)
		text := map[string]string{}
		count := map[string]int{}
		for _, m := range w.messages() {
			count[m.to]++
			text[m.to] += m.subject + "\n" + m.body + "\n"
			if len(m.body) > webhookBytes && m.to == "room" {
				t.Errorf("a message has %d bytes", len(m.body))
			}
		}
		for _, to := range []string{"room", "team@example.com"} {
			if count[to] == 0 || count[to] > 5 {
				t.Errorf("%s got %d messages for 1,000 problems, want 1 to 5", to, count[to])
			}
			for _, name := range urgent {
				if !strings.Contains(text[to], name) {
					t.Errorf("%s was not told of %s", to, name)
				}
			}
		}
		before := len(w.messages())
		for _, id := range ids {
			p.tell(w.recovery(id))
		}
		after(5 * time.Minute)
		if n := len(w.messages()) - before; n == 0 || n > 10 {
			t.Errorf("%d messages for the recoveries to two addresses", n)
		}
		for _, a := range w.alerts {
			if a.State != model.AlertSent {
				t.Fatalf("alert %+v", a)
			}
		}
		if len(p.lanes) != 0 || p.waiting != 0 || len(w.escalations) != 0 {
			t.Errorf("left: %d lanes, %d waiting, %d escalations", len(p.lanes), p.waiting, len(w.escalations))
		}
	})
}

func TestGrouping_oneAlertKeepsItsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(1, "Db1")
		p := w.start(t, chat)
		defer p.stop()
		from := time.Now()
		id := w.problem(1, model.Average, "disk")
		p.tell(id)
		after(20 * time.Second)
		p.tell(w.recovery(id), w.problem(2, model.High, "load"))
		after(5 * time.Minute)
		expectLines(t, w.lines(from),
			"10 room average: Db1: disk", "10 team@example.com average: Db1: disk",
			"70 room 1 problem, 1 high; 1 resolved", "70 team@example.com 1 problem, 1 high; 1 resolved")
		for _, m := range w.messages() {
			switch {
			case m.to == "room":
			case m.id == "tidemark-problem-1" && m.thread == m.id:
			case strings.HasPrefix(m.id, "tidemark-digest-"):
			default:
				t.Errorf("message %+v: want it to begin the thread of its problem", m)
			}
		}
		if a := w.alerts[3]; a.Together == 0 {
			t.Errorf("alert %+v, want it sent together with another", a)
		}
	})
}

func TestGrouping_intervalIsKeptWhenQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(1, "Db1")
		p := w.start(t, chat)
		defer p.stop()
		from := time.Now()
		for i := range 4 {
			p.tell(w.problem(model.TriggerID(i+1), model.Average, fmt.Sprint("p", i)))
			after(40 * time.Second)
		}
		after(10 * time.Minute)
		var room []string
		for _, line := range w.lines(from) {
			if strings.Contains(line, " room ") {
				room = append(room, line)
			}
		}
		expectLines(t, room, "10 room average: Db1: p0", "70 room average: Db1: p1", "130 room 2 problems")
	})
}

func TestDigest_limits(t *testing.T) {
	f := func(high, low, limit, most int) {
		t.Helper()
		var alerts []model.Alert
		for i := range high + low {
			severity := model.Disaster
			if i >= high {
				severity = model.Warning
			}
			alerts = append(alerts, model.Alert{
				ID: uint64(i + 1), ProblemID: model.EventID(i + 1), Severity: severity, Host: fmt.Sprint("h", i%30), Name: fmt.Sprintf("№%d %s", i, strings.Repeat("ž", 200)),
			})
		}
		parts := compose(&channel{Media: &Media{}, maxBytes: limit}, alerts, surroundings{zone: time.UTC}, 1)
		if len(parts) > most {
			t.Errorf("%d high, %d low, limit %d: %d messages, want at most %d", high, low, limit, len(parts), most)
		}
		all, count := "", 0
		for _, p := range parts {
			all += p.message.Body + "\n"
			count += len(p.alerts)
			if !utf8.ValidString(p.message.Body) {
				t.Error("a character was cut in two")
			}
		}
		for i := range high {
			if !strings.Contains(all, fmt.Sprintf("№%d ", i)) {
				t.Fatalf("%d high, %d low, limit %d: problem %d is not named", high, low, limit, i)
			}
		}
		if count != high+low {
			t.Errorf("%d alerts in the messages, want %d", count, high+low)
		}
	}
	f(1, 1, 1000, 1)
	f(3, 1000, 2000, 2)
	f(1000, 1000, 4000, maxParts)
	f(1000, 0, 1<<20, 1)
	f(0, 2000, 500, maxParts)
}

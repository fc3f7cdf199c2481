package alert

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tidemark/model"
)

// imported is what an import hands over: both objects are on in Zabbix, but for one.
const imported = `
media: [{name: ticket, ticket: true, webhook: {url: "https://t.example/"}}, {name: old, disabled: true, webhook: {url: "https://o.example/"}}]
receivers: [{name: ops, media: [{media: ticket, to: ops}, {media: modem, to: "1"}]}, {name: lost, media: [{media: modem, to: "1"}]}]
actions:
  - {name: page, operations: [{receivers: [ops, lost], subject: "{EVENT.NAME}"}, {receivers: [ops], media: [modem]}]}
  - {name: off, disabled: true, operations: [{receivers: [ops]}]}
  - {name: nobody, operations: [{receivers: [lost]}]}
`

// reset puts the world's receiver in the place of the senders of a new plan.
func (p *process) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ch := range p.plan.channels {
		ch.sender = receiver{p.w}
	}
}

func takeImported(t *testing.T, p *process, text string) string {
	t.Helper()
	c, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	taken, remarks, err := p.TakeZabbix(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	p.reset()
	return fmt.Sprint(taken, len(remarks))
}

// What Zabbix had on is off until the cutover; then it tells of what begins, and of nothing that was there.
func TestShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(1, "Db1")
		p := w.start(t, "")
		if got, want := takeImported(t, p, imported), "[{media types 2 0 0 0} {receivers 1 0 0 1} {actions 2 0 0 1}] 6"; got != want {
			t.Errorf("taken %s, expected %s", got, want)
		}
		if err := p.BeginShadow(t.Context()); err != nil {
			t.Fatal(err)
		}
		// An action of one's own is not in force either, in this life and the next.
		own, _ := Parse([]byte(`{actions: [{name: own, operations: [{receivers: [ops], subject: own}]}]}`))
		if err := p.Apply(t.Context(), own, false); err != nil {
			t.Fatal(err)
		}
		p.stop()
		p = w.start(t, "")
		defer func() { p.stop() }()
		from := time.Now()
		p.tell(w.problem(7, model.High, "before"))
		after(time.Hour)
		expectLines(t, w.lines(from))
		if got := takeImported(t, p, imported); got != "[{media types 0 0 2 0} {receivers 0 0 1 1} {actions 0 0 2 1}] 6" {
			t.Errorf("taken again: %s", got)
		}
		done, err := p.Cutover(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.reset()
		if got, want := fmt.Sprint(done.Actions, done.Media, done.Off, done.Unable, done.Since != 0), "[page] [ticket] [media type old action off] [] true"; got != want {
			t.Errorf("the cutover did %s, expected %s", got, want)
		}
		p.tell(w.problem(8, model.High, "after"))
		after(time.Hour)
		lines := w.lines(from)
		slices.Sort(lines) // two actions at once
		expectLines(t, lines, "3600 ops after", "3600 ops own")
		// A later import switches nothing off, nor what was switched off here on.
		next := p.Config()
		for _, a := range next.Actions {
			if a.Name == "page" {
				a.Disabled = true
				if err := p.Apply(t.Context(), &Config{Actions: []Action{a}}, false); err != nil {
					t.Fatal(err)
				}
			}
		}
		takeImported(t, p, imported)
		for _, a := range p.Config().Actions {
			if a.Name == "page" && (!a.Disabled || a.AwaitsCutover) {
				t.Errorf("an action that was switched off here is %+v after an import", a)
			}
		}
		for _, m := range p.Config().Media {
			if m.Disabled != (m.Name == "old") || p.InShadow() != 0 {
				t.Errorf("after an import the media type is %+v", m)
			}
		}
	})
}

// Objects of one's own with the same name stay.
func TestTakeZabbix_own(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		p := w.start(t, `{media: [{name: ticket, webhook: {url: "https://mine.example/"}}]}`)
		defer p.stop()
		if got, want := takeImported(t, p, imported), "[{media types 1 0 0 1} {receivers 1 0 0 1} {actions 2 0 0 1}] 7"; got != want {
			t.Errorf("taken %s, expected %s", got, want)
		}
		if m := p.Config().Media[0]; m.Webhook.URL != "https://mine.example/" || m.Origin != "" || m.Disabled {
			t.Errorf("one's own media type became %+v", m)
		}
	})
}

package alert

import (
	"context"
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

const twoSteps = single + `
actions:
  - {name: a, step_duration: 1m, operations: [{receivers: [first], subject: "1:P{EVENT.ID}"}, {from: 2, receivers: [first, second], subject: "2:P{EVENT.ID}"}]}
`

// story lets three problems come, and two of them go, while the process dies at one call and is started again. It returns how many calls there were.
func story(t *testing.T, config string, cut int, cutAfter bool) (w *world, deaths int) {
	w = newWorld()
	deaths = w.live(t, config, cut, cutAfter)
	return w, deaths
}

// live is the story in a world.
func (w *world) live(t *testing.T, config string, cut int, cutAfter bool) (deaths int) {
	w.host(1, "Db1")
	p := w.start(t, config)
	w.mu.Lock()
	w.cut, w.cutAfter = cut, cutAfter
	w.mu.Unlock()
	restart := func() {
		w.mu.Lock()
		dead := w.dead
		w.mu.Unlock()
		if dead {
			p.stop()
			deaths++
			p = w.start(t, "")
		}
	}
	var ids []model.EventID
	for i := range 3 {
		id := w.problem(model.TriggerID(10+i), model.High, fmt.Sprint("problem ", i))
		ids = append(ids, id)
		p.tell(id)
		after(7 * time.Second)
		restart()
	}
	for range 3 {
		after(30 * time.Second)
		restart()
	}
	for _, id := range ids[:2] {
		p.tell(w.recovery(id))
		after(7 * time.Second)
		restart()
	}
	after(10 * time.Minute)
	restart()
	after(10 * time.Minute)
	p.stop()
	return deaths
}

// TestKill_atEveryCall lets the process die at each call of the store and of a sender, before and after its effect. Every message must come; twice only
// the one that was sent and not recorded.
func TestKill_atEveryCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole, _ := story(t, twoSteps, 0, false)
		want := messagesOf(whole)
		// Three problems, a first step for one receiver, a second for two, and two recoveries for two.
		if len(want) != 3+3*2+2*2 {
			t.Fatalf("messages without a death: %v", want)
		}
		for cut := 1; cut <= whole.calls; cut++ {
			for _, after := range []bool{false, true} {
				w, deaths := story(t, twoSteps, cut, after)
				// What is recorded together differs from run to run, so the last calls are not always reached.
				if deaths != 1 && w.calls > cut {
					t.Fatalf("call %d of %d, after %v: %d deaths, want 1", cut, w.calls, after, deaths)
				}
				got := messagesOf(w)
				twice := 0
				for i := 1; i < len(got); i++ {
					if got[i] == got[i-1] {
						twice++
					}
				}
				if !slices.Equal(slices.Compact(slices.Clone(got)), want) {
					t.Errorf("call %d, after %v: messages\n%s\nwant\n%s", cut, after, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				// At the death each session may have had one message that was sent and not recorded.
				if twice > sessions {
					t.Errorf("call %d, after %v: %d messages twice", cut, after, twice)
				}
			}
		}
	})
}

// TestKill_once lets the process die at each call where no message may come twice. One that is missing is told: its alert has failed, because it may have arrived.
func TestKill_once(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := newWorld()
		whole.once = true
		whole.live(t, twoSteps, 0, false)
		want := messagesOf(whole)
		if len(want) != 3+3*2+2*2 {
			t.Fatalf("messages without a death: %v", want)
		}
		for cut := 1; cut <= whole.calls; cut++ {
			for _, after := range []bool{false, true} {
				w := newWorld()
				w.once = true
				w.live(t, twoSteps, cut, after)
				got := messagesOf(w)
				if len(slices.Compact(slices.Clone(got))) != len(got) {
					t.Errorf("call %d, after %v: a message came twice\n%s", cut, after, strings.Join(got, "\n"))
				}
				unsure := 0
				for _, a := range w.alerts {
					switch {
					case a.State == model.AlertFailed && strings.Contains(a.Error, "may have arrived"):
						unsure++
					case a.State != model.AlertSent:
						t.Errorf("call %d, after %v: alert %d ends as %v: %s", cut, after, a.ID, a.State, a.Error)
					}
				}
				if missing := len(want) - len(got); missing > unsure || unsure > sessions {
					t.Errorf("call %d, after %v: %d messages are missing and %d are told as unsure", cut, after, missing, unsure)
				}
			}
		}
	})
}

// TestStop_sendsLaterWhatWasNotBegun ends the process while the store is slow to note that an alert is about to be sent. It cannot have arrived, so it is
// sent after the next start also where no message may come twice.
func TestStop_sendsLaterWhatWasNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.once, w.claiming = true, 5*time.Second
		w.host(1, "Db1")
		p := w.start(t, single+"\nactions: [{name: a, operations: [{receivers: [first]}]}]")
		p.tell(w.problem(10, model.High, "x"))
		after(3 * time.Second)
		p.stop()
		if got := messagesOf(w); len(got) != 0 {
			t.Fatalf("sent before the start: %v", got)
		}
		w.claiming = 0
		p = w.start(t, "")
		after(time.Minute)
		p.stop()
		if got := messagesOf(w); len(got) != 1 {
			t.Errorf("messages after the next start: %v, want one", got)
		}
		for _, a := range w.alerts {
			if a.State != model.AlertSent {
				t.Errorf("alert %d ends as %v: %s", a.ID, a.State, a.Error)
			}
		}
	})
}

// senderFunc is a sender made of a function.
type senderFunc func(context.Context, media.Message) (string, error)

// Send implements media.Sender.
func (f senderFunc) Send(ctx context.Context, m media.Message) (string, error) { return f(ctx, m) }

// TestOnce_keepsClaim lets the store fail after a try that did not get through, so that the alert's next try is noted by its claim alone, and lets it work
// again while the message is on its way: what was not stored before must not be put over the claim. The process dies behind the message, and nobody may
// send it again.
func TestOnce_keepsClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.once = true
		w.host(1, "Db1")
		p := w.start(t, single+"\nactions: [{name: a, operations: [{receivers: [first]}]}]")
		set := func(refuses, dead bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.refusesCommits, w.dead = refuses, dead
		}
		tries := 0
		p.mu.Lock()
		for _, ch := range p.plan.channels {
			ch.sender = senderFunc(func(ctx context.Context, m media.Message) (string, error) {
				if tries++; tries == 1 {
					set(true, false)
					return "", errors.New("busy")
				}
				set(false, false)
				p.poke()
				time.Sleep(5 * time.Second) //nolint:forbidigo // time of the bubble
				answer, err := receiver{w}.Send(ctx, m)
				set(false, true)
				return answer, err
			})
		}
		p.mu.Unlock()
		p.tell(w.problem(10, model.High, "x"))
		after(5 * time.Minute)
		p.stop()
		if tries != 2 || len(w.messages()) != 1 {
			t.Fatalf("%d tries, %d messages before the next start; want 2 and 1", tries, len(w.messages()))
		}
		p = w.start(t, "")
		after(5 * time.Minute)
		p.stop()
		if got := messagesOf(w); len(got) != 1 {
			t.Errorf("messages: %v, want one", got)
		}
	})
}

func messagesOf(w *world) []string {
	var list []string
	for _, m := range w.messages() {
		list = append(list, m.to+" "+m.subject)
	}
	slices.Sort(list)
	return list
}

// TestOverflow_readsTheStore puts more events than wait in memory: none is missed, none comes twice.
func TestOverflow_readsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(1, "Db1")
		p := w.start(t, single+"\nactions: [{name: a, conditions: [{type: severity, value: disaster}], operations: [{receivers: [first]}]}]")
		defer p.stop()
		after(time.Second)
		var ids []model.EventID
		const count = maxPut + 2500
		for i := range count {
			severity := model.Warning
			if i%1000 == 0 {
				severity = model.Disaster
			}
			ids = append(ids, w.problem(model.TriggerID(i+1), severity, "x"))
		}
		p.mu.Lock() // Run cannot take any in between
		for page := range slices.Chunk(ids, 500) {
			p.tell(page...)
		}
		p.mu.Unlock()
		after(time.Minute)
		if len(w.messages()) != (count+999)/1000 {
			t.Errorf("%d messages, want %d", len(w.messages()), (count+999)/1000)
		}
		if p.lastEvent != count {
			t.Errorf("looked at events up to %d, want %d", p.lastEvent, count)
		}
	})
}

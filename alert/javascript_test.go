package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidemark/alert/media"
	"tidemark/model"
)

// desk is a ticket service behind a script: it opens a ticket for a problem, and notes what it is told of it later.
type desk struct {
	mu    sync.Mutex
	calls []map[string]string
	fails int
}

func (d *desk) RunWebhook(_ context.Context, j media.Job) ([]byte, string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := map[string]string{}
	if err := json.Unmarshal(j.Value, &p); err != nil {
		return nil, "", err
	}
	if d.fails--; d.fails >= 0 {
		return nil, "", errors.New("Sending failed")
	}
	d.calls = append(d.calls, p)
	if p["ticket"] != "*UNKNOWN*" {
		return []byte(`{"tags":{}}`), "", nil
	}
	return fmt.Appendf(nil, `{"tags":{"ticket":"T-%d","scope":"load"}}`, len(d.calls)), "", nil
}

func (d *desk) lines() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []string
	for _, p := range d.calls {
		list = append(list, strings.Join([]string{p["event"], p["ticket"], p["value"], p["host"], p["item"], p["hook"], p["page"], p["token"], p["odd"]}, " "))
	}
	return list
}

const scripted = `
url: https://page.example/
media:
  - name: desk
    ticket: true
    secrets: {token: s3cret}
    zabbix_webhook:
      script: return send(value)
      tags: true
      menu: {name: "Ticket {EVENT.TAGS.ticket}", url: "https://desk.example/{EVENT.TAGS.ticket}"}
      parameters:
        event: "{EVENT.ID}"
        ticket: "{EVENT.TAGS.ticket}"
        value: "{EVENT.VALUE}"
        host: "{HOST.NAME}"
        item: "{{ITEM.VALUE}.regsub(\"([0-9]+)\", \"\\1\")}"
        hook: "{$HOOK}"
        page: "{$ZABBIX.URL}"
        token: "{SECRET.token}"
        odd: "{NO.MACRO} {$NONE}"
receivers:
  - {name: desk, media: [{media: desk, to: queue}]}
actions:
  - name: all
    operations: [{receivers: [desk]}]
`

// startScripts is start with scripts that are run by a desk instead of senders that are replaced.
func (w *world) startScripts(t *testing.T, d *desk, config string) *process {
	t.Helper()
	a, err := Open(t.Context(), Options{Store: w, Objects: w, Problems: w, Names: w, Zone: time.UTC, Scripts: d})
	if err != nil {
		t.Fatal(err)
	}
	if config != "" {
		c, err := Parse([]byte(config))
		if err == nil {
			err = a.Apply(t.Context(), c, true)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = a.Run(ctx) })
	return &process{a, w, func() { cancel(); wg.Wait() }}
}

// What a script returns becomes tags of the problem, which the recovery's script gets: also when the recovery waited behind the problem's
// message, and after a restart.
func TestJavaScript_tags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newWorld(), &desk{}
		w.host(1, "Db1")
		p := w.startScripts(t, d, scripted)
		first := w.problem(7, model.High, "disk")
		p.tell(first)
		after(time.Second)
		if tags := w.open[first].Tags; len(tags) != 2 || tags[1] != (model.Tag{Name: "ticket", Value: "T-1"}) {
			t.Errorf("tags of the open problem: %v", tags)
		}
		if links := p.Links([]model.Problem{w.open[first], {}}); len(links[0]) != 1 || links[0][0] != (Link{"Ticket T-1", "https://desk.example/T-1"}) || links[1] != nil {
			t.Errorf("links %v", links)
		}
		p.stop()
		p = w.startScripts(t, d, "")
		defer func() { p.stop() }()
		p.tell(w.recovery(first))
		after(time.Second)
		d.mu.Lock()
		d.fails = 1
		d.mu.Unlock()
		second := w.problem(8, model.High, "disk")
		p.tell(second)
		after(time.Second)
		p.tell(w.recovery(second)) // while the first message waits for its next attempt
		after(time.Minute)
		expectLines(t, d.lines(),
			"1 *UNKNOWN* 1 Db1 12 hook of host 1 https://page.example s3cret {NO.MACRO} {$NONE}",
			"1 T-1 0 Db1 12 hook of host 1 https://page.example s3cret {NO.MACRO} {$NONE}",
			"3 *UNKNOWN* 1 Db1 12 hook of host 1 https://page.example s3cret {NO.MACRO} {$NONE}",
			"3 T-3 0 Db1 12 hook of host 1 https://page.example s3cret {NO.MACRO} {$NONE}",
		)
		for _, a := range w.alerts {
			if strings.Contains(fmt.Sprint(a.Macros), "s3cret") {
				t.Error("a secret is kept with an alert")
			}
		}
	})
}

func TestJavaScript_test(t *testing.T) {
	w, d := newWorld(), &desk{}
	a, err := Open(t.Context(), Options{Store: w, Objects: w, Problems: w, Names: w, Zone: time.UTC, Scripts: d})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse([]byte(scripted))
	if err == nil {
		err = a.Apply(t.Context(), c, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := a.Test(t.Context(), Test{Media: "desk", To: "x"}); err != nil || answer != `{"tags":{"ticket":"T-1","scope":"load"}}` {
		t.Errorf("test: %q %v", answer, err)
	}
	if d.calls[0]["event"] != "1" || d.calls[0]["hook"] != "hook of host 0" {
		t.Errorf("parameters of a test: %v", d.calls[0])
	}
	f := func(hook, want string) {
		t.Helper()
		c, err := Parse([]byte("media: [{name: x, zabbix_webhook: {" + hook + "}}]"))
		if err == nil {
			err = a.Apply(t.Context(), c, false)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", hook, err, want)
		}
	}
	f("script: ''", "script is empty")
	f("script: x, timeout: 61s", "timeout is 1m1s, expected 1s to 1m0s")
	f("script: x, allow: [y]", "is no network")
	f("script: x, menu: {name: a, url: 'https://x/'}", "the url has no {EVENT.TAGS.name}")
	f("script: x, menu: {name: '', url: 'https://{EVENT.TAGS.a}'}", "the name has 0 bytes")
}

func TestEventMenu_link(t *testing.T) {
	e := &model.Event{ID: 9, Tags: []model.Tag{{Name: "link", Value: "https://desk.example/1"}, {Name: "bad", Value: "javascript:alert(1)"}, {Name: "id", Value: "1"}}}
	f := func(name, url string, want Link, ok bool) {
		t.Helper()
		if link, got := (&EventMenu{name, url}).link(e); got != ok || ok && link != want {
			t.Errorf("%s: %v %v, want %v %v", url, link, got, want, ok)
		}
	}
	f("a {EVENT.TAGS.id}", "{EVENT.TAGS.link}?e={EVENT.ID}", Link{"a 1", "https://desk.example/1?e=9"}, true)
	f("a", "{EVENT.TAGS.bad}", Link{}, false)
	f("a", "{EVENT.TAGS.none}", Link{}, false)
	f("{EVENT.TAGS.none}", "{EVENT.TAGS.link}", Link{}, false)
}

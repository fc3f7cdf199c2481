package alert

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"tidemark/model"
)

// example uses every part of the configuration.
const example = `
url: https://tidemark.example
heartbeat: {url: "https://watch.example/ping", every: 1m}
media:
  - name: mail
    mail: {server: "mail.example:587", from: "Tidemark <t@example.com>", user: t, html: true}
    secrets: {PASSWORD: hush}
    group_wait: 5s
    group_interval: 2m
  - name: chat
    webhook: {url: "https://chat.example/{SECRET.TOKEN}", headers: {X-A: b}, body: {text: "{ALERT.MESSAGE}", n: 1}, expect: ok, allow: [10.0.0.0/8, 192.168.1.1]}
    secrets: {TOKEN: hush2}
    problem: {subject: s, message: m}
  - {name: page, ticket: true, script: {name: page.sh, arguments: ["{ALERT.SENDTO}"]}, attempts: 3, retry_every: 30s, sessions: 2, timeout: 10s}
receivers:
  - name: ops
    media:
      - {media: mail, to: "a@example.com, b@example.com", severities: [high, disaster], when: "1-5,09:00-18:00;6-7,10:00-16:00"}
      - {media: chat, to: "#ops"}
actions:
  - name: all
    evaluation: formula
    formula: A and (B or not C)
    conditions: [{type: severity, value: warning}, {type: host_group, value: Linux}, {type: time, value: "1-7,00:00-24:00"}]
    delay: 30s
    operations: [{receivers: [ops], media: [mail], duration: 90s}, {from: 2, to: -1, receivers: [ops], if: not_acknowledged, subject: x}]
    recovery: []
    update: [{involved: true}]
    flapping: {changes: 6, within: 1h}
maintenances:
  - name: patches
    from: 2026-01-01T00:00
    to: 2027-01-01T00:00
    groups: [Linux]
    tags: [{tag: service, value: db}]
    periods: [{every: week, days: [sun], at: "02:00", for: 2h}, {every: month, months: [1, 7], days: [mon], weeks: [1, 5], at: "03:00", for: 90m}]
`

func TestConfig_storedAndReadBack(t *testing.T) {
	c, err := Parse([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compile(c, &Options{}); err != nil {
		t.Fatal(err)
	}
	objects, err := c.objects()
	if err != nil {
		t.Fatal(err)
	}
	back, err := configOf(objects)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := json.Marshal(c)
	second, _ := json.Marshal(back)
	if string(first) != string(second) {
		t.Errorf("stored and read back:\n%s\nbefore:\n%s", second, first)
	}
	if back.Actions[0].Recovery == nil || len(back.Actions[0].Recovery) != 0 {
		t.Errorf("recovery %#v, want an empty list", back.Actions[0].Recovery)
	}
	// What is shown can be put again, and says no secret.
	shown, err := json.Marshal(c.shown())
	if err != nil || strings.Contains(string(shown), "hush") {
		t.Fatalf("shown: %s, %v", shown, err)
	}
	again, err := Parse(shown)
	if err != nil {
		t.Fatal(err)
	}
	if merged := c.merge(again); !reflect.DeepEqual(merged.Media, c.Media) {
		t.Errorf("media after the shown ones were put: %+v", merged.Media)
	}
}

func TestConfig_mistakes(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		c, err := Parse([]byte(text))
		if err == nil {
			_, err = compile(c, &Options{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v, want %q", text, err, want)
		}
	}
	f("actionss: []", "actionss")
	f("media: [{name: a}]", `media "a": 0 of mail, webhook, script, zabbix_webhook and command are set`)
	f("media: [{name: a, mail: {server: x, from: a@b.c}}]", "expected host:port")
	f("media: [{name: a, script: {name: ../x}}]", "expected the name of a file")
	f("media: [{name: a, webhook: {url: 'http://x/', allow: [ten]}}]", "is no network")
	f("media: [{name: a, group_wait: soon, script: {name: x}}]", "is no duration")
	f("media: [{name: a, script: {name: x}}, {name: a, script: {name: x}}]", "used twice")
	f("receivers: [{name: r, media: [{media: none, to: x}]}]", `receiver "r": media 1: "none" is no media type`)
	f("receivers: [{name: r, media: [{media: m, to: x, when: '1-8,00:00-01:00'}]}]", "is no period")
	f("receivers: [{name: r, media: [{media: m, to: x, severities: [awful]}]}]", "is no severity")
	f("actions: [{name: a, operations: []}]", "operations is empty")
	f("actions: [{name: a, operations: [{receivers: [r]}]}]", `operation 1: "r" is no receiver`)
	f("actions: [{name: a, operations: [{involved: true}]}]", "nobody was told yet")
	f("receivers: [{name: r}]\nactions: [{name: a, operations: [{receivers: [r], from: 3, to: 2}]}]", "steps 3 to 2")
	f("receivers: [{name: r}]\nactions: [{name: a, step_duration: 1s, operations: [{receivers: [r]}]}]", "step_duration")
	f("receivers: [{name: r}]\nactions: [{name: a, conditions: [{type: colour, value: red}], operations: [{receivers: [r]}]}]", `condition A: type is "colour"`)
	f("receivers: [{name: r}]\nactions: [{name: a, conditions: [{type: host, operator: at_least, value: x}], operations: [{receivers: [r]}]}]", "expected one of equals")
	f("receivers: [{name: r}]\nactions: [{name: a, conditions: [{type: name, operator: matches, value: '('}], operations: [{receivers: [r]}]}]", "regular expression")
	f("receivers: [{name: r}]\nactions: [{name: a, evaluation: formula, formula: A and, conditions: [{type: host, value: x}], operations: [{receivers: [r]}]}]", "formula: it ends")
	f("maintenances: [{name: m, hosts: [a], periods: [{every: week, at: '1:00', for: 1h}]}]", "days is empty")
	f("maintenances: [{name: m, hosts: [a], periods: [{every: day, at: '25:00', for: 1h}]}]", "time of day")
	f("maintenances: [{name: m, periods: [{every: day, at: '1:00', for: 1h}]}]", "hosts and groups are empty")
	f("heartbeat: {url: 'http://x/', every: 1s}", "expected 5s to 1d")
	f(strings.Repeat("#", MaxConfigBytes+1), "expected at most")
}

func TestApply_refusesAndDeletes(t *testing.T) {
	w := newWorld()
	a, err := Open(t.Context(), Options{Store: w, Objects: w, Problems: w, Names: w})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse([]byte(example))
	if err == nil {
		err = a.Apply(t.Context(), c, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Delete(t.Context(), "media", "mail"); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), `"mail" is no media type`) {
		t.Errorf("deleting a medium in use: %v, want ErrInvalid", err)
	}
	if err := a.Delete(t.Context(), "action", "none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleting nothing: %v, want ErrNotFound", err)
	}
	if err := a.Delete(t.Context(), "action", "all"); err != nil {
		t.Error(err)
	}
	if err := a.Apply(t.Context(), &Config{Receivers: []Receiver{{Name: "r", Media: []ReceiverMedia{{Media: "x"}}}}}, false); !errors.Is(err, ErrInvalid) {
		t.Errorf("a wrong receiver: %v, want ErrInvalid", err)
	}
	if len(w.objects) != 6 {
		t.Errorf("%d objects stored, want 3 media, 1 receiver, 1 maintenance and the settings", len(w.objects))
	}
	if err := a.Apply(t.Context(), &Config{}, true); err != nil || len(w.objects) != 0 {
		t.Errorf("replaced by nothing: %v, %d objects left", err, len(w.objects))
	}
}

func TestCondition(t *testing.T) {
	s := subject{
		event: &model.Event{TriggerID: 7, Severity: model.High, Name: "Disk is full", Tags: []model.Tag{{Name: "scope", Value: "capacity"}, {Name: "env", Value: "prod"}}},
		host:  &model.Host{Host: "db1", Groups: []string{"Europe/Riga", "Linux"}}, template: "Linux by agent", suppressed: true,
		now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC), // a Wednesday
	}
	f := func(c Condition, want bool) {
		t.Helper()
		compiled, err := c.compile()
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			return
		}
		if got := compiled.holds(&s); got != want {
			t.Errorf("%+v: %v, want %v", c, got, want)
		}
	}
	f(Condition{Type: "host_group", Value: "Europe"}, true)
	f(Condition{Type: "host_group", Value: "Eur"}, false)
	f(Condition{Type: "host_group", Operator: opNot, Value: "Linux"}, false)
	f(Condition{Type: "host_group", Operator: opContains, Value: "riga"}, true)
	f(Condition{Type: "template", Value: "Linux by agent"}, true)
	f(Condition{Type: "template", Operator: opContainsNot, Value: "windows"}, true)
	f(Condition{Type: "host", Value: "db1"}, true)
	f(Condition{Type: "host", Operator: opMatches, Value: `^db\d$`}, true)
	f(Condition{Type: "host", Operator: opMatchesNot, Value: `^db\d$`}, false)
	f(Condition{Type: "trigger", Value: "7"}, true)
	f(Condition{Type: "trigger", Operator: opNot, Value: "7"}, false)
	f(Condition{Type: "name", Value: "FULL"}, true)
	f(Condition{Type: "tag", Value: "env"}, true)
	f(Condition{Type: "tag", Operator: opNot, Value: "env"}, false)
	f(Condition{Type: "tag_value", Tag: "env", Value: "prod"}, true)
	f(Condition{Type: "tag_value", Tag: "scope", Value: "prod"}, false)
	f(Condition{Type: "tag_value", Tag: "none", Operator: opContainsNot, Value: "x"}, true)
	f(Condition{Type: "severity", Value: "average"}, true)
	f(Condition{Type: "severity", Operator: opAtMost, Value: "average"}, false)
	f(Condition{Type: "severity", Operator: opEquals, Value: "high"}, true)
	f(Condition{Type: "severity", Operator: opNot, Value: "high"}, false)
	f(Condition{Type: "time", Value: "1-5,09:00-18:00"}, true)
	f(Condition{Type: "time", Operator: opNotIn, Value: "3,12:00-12:01"}, false)
	f(Condition{Type: "time", Value: "3,09:00-12:00"}, false)
	f(Condition{Type: "suppressed", Value: "true"}, true)
	f(Condition{Type: "suppressed", Operator: opNot, Value: "true"}, false)
}

func TestRule(t *testing.T) {
	s := subject{event: &model.Event{Severity: model.High}, host: &model.Host{Host: "db1"}}
	yes, no := Condition{Type: "severity", Value: "high"}, Condition{Type: "severity", Value: "disaster"}
	f := func(evaluation, formula string, want bool, conditions ...Condition) {
		t.Helper()
		a := Action{Evaluation: evaluation, Formula: formula, Conditions: conditions}
		r, err := a.compileRule()
		if err != nil {
			t.Error(err)
			return
		}
		if got := r.holds(evaluation, &s); got != want {
			t.Errorf("%s %s %v: %v, want %v", evaluation, formula, conditions, got, want)
		}
	}
	host := Condition{Type: "host", Value: "db1"}
	f("", "", true)
	f("or", "", true, no, yes)
	f("and", "", false, no, yes)
	f("and_or", "", true, no, host, yes)
	f("and_or", "", false, no, host)
	f("formula", "A or B", true, no, yes)
	f("formula", "A and B or C", true, no, yes, yes)
	f("formula", "A and (B or C)", false, no, yes, yes)
	f("formula", "not A and not(not B)", true, no, yes)
	f("formula", "x", true, Condition{Label: "x", Type: "severity", Value: "high"})
	for _, bad := range []string{"", "D", "A B", "(A", "A)", "and A", "A or", strings.Repeat("(", 100) + "A" + strings.Repeat(")", 100), strings.Repeat("not ", 300) + "A"} {
		a := Action{Evaluation: "formula", Formula: bad, Conditions: []Condition{yes}}
		if _, err := a.compileRule(); err == nil {
			t.Errorf("formula %.40q was taken", bad)
		}
	}
	if got := (&Condition{}).LabelAt(27); got != "AB" {
		t.Errorf("label 27 is %s, want AB", got)
	}
}

func TestMaintenance_until(t *testing.T) {
	riga, err := time.LoadLocation("Europe/Riga")
	if err != nil {
		t.Fatal(err)
	}
	f := func(yaml, at, want string) {
		t.Helper()
		c, err := Parse([]byte("maintenances: [{name: m, hosts: [a], " + yaml + "}]"))
		if err == nil {
			err = c.Maintenances[0].check()
		}
		if err != nil {
			t.Errorf("%s: %v", yaml, err)
			return
		}
		now, err := time.ParseInLocation("2006-01-02 15:04", at, riga)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if end, ok := c.Maintenances[0].Until(now); ok {
			got = end.Format("2006-01-02 15:04")
		}
		if got != want {
			t.Errorf("%s at %s: until %q, want %q", yaml, at, got, want)
		}
	}
	once := "periods: [{every: once, start: 2026-03-01T22:00, for: 4h}]"
	f(once, "2026-03-01 21:59", "")
	f(once, "2026-03-01 22:00", "2026-03-02 02:00")
	f(once, "2026-03-02 02:00", "")
	f("to: 2026-03-02T01:00, "+once, "2026-03-01 22:00", "2026-03-02 01:00")
	f("from: 2026-03-01T23:00, "+once, "2026-03-01 22:00", "")
	day := "from: 2026-03-01T00:00, periods: [{every: day, interval: 3, at: '22:00', for: 30h}]"
	f(day, "2026-03-01 22:00", "2026-03-03 04:00")
	f(day, "2026-03-03 03:59", "2026-03-03 04:00")
	f(day, "2026-03-03 04:00", "")
	f(day, "2026-03-04 22:00", "2026-03-06 04:00")
	f(day, "2026-02-26 22:30", "")
	week := "from: 2026-03-04T00:00, periods: [{every: week, interval: 2, days: [mon, sun], at: '02:00', for: 1h}]" // a Wednesday
	f(week, "2026-03-08 02:30", "2026-03-08 03:00")
	f(week, "2026-03-09 02:30", "")
	f(week, "2026-03-16 02:30", "2026-03-16 03:00")
	month := "periods: [{every: month, months: [2, 3], day_of_month: 31, at: '10:00', for: 1h}]"
	f(month, "2026-03-31 10:30", "2026-03-31 11:00")
	f(month, "2026-05-31 10:30", "")
	nth := "periods: [{every: month, days: [tue], weeks: [2, 5], at: '10:00', for: 1h}]"
	f(nth, "2026-03-10 10:30", "2026-03-10 11:00")
	f(nth, "2026-03-31 10:30", "2026-03-31 11:00")
	f(nth, "2026-02-24 10:30", "2026-02-24 11:00") // the last of four
	f(nth, "2026-03-24 10:30", "")
	// 2026-03-29 03:00 does not exist in Riga; the period begins at 04:00.
	f("periods: [{every: day, at: '03:30', for: 1h}]", "2026-03-29 04:45", "2026-03-29 05:30")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte(`{"actions":[{"name":"a","formula":"A","evaluation":"formula"}]}`))
	f.Add([]byte("zabbix_export: {version: '6.0', media_types: [{name: x, type: EMAIL}]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := Parse(text); err == nil {
			_, err = compile(c, &Options{})
			if objects, objectsErr := c.objects(); err == nil && objectsErr == nil {
				if _, err := configOf(objects); err != nil {
					t.Errorf("what was stored cannot be read: %v", err)
				}
			}
		}
		if c, _, err := ImportZabbix(text); err == nil {
			_, _ = compile(c, &Options{})
		}
	})
}

package event

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidemark/model"
)

const second = int64(time.Second)

// memory is a Store that keeps what it got, and Objects, Values and Expressions with fixed answers.
type memory struct {
	records  []Record
	loaded   Loaded
	err      error
	triggers map[model.TriggerID]model.Trigger
	onRecord func()
}

func (m *memory) Load(context.Context) (Loaded, error) { return m.loaded, m.err }

func (m *memory) Record(_ context.Context, r Record) error {
	if m.onRecord != nil {
		m.onRecord()
	}
	if m.err != nil {
		return m.err
	}
	m.records = append(m.records, Record{Events: slices.Clone(r.Events), States: slices.Clone(r.States), Evaluated: r.Evaluated})
	return nil
}

func (m *memory) TriggerByID(id model.TriggerID) (*model.Trigger, bool) {
	t, ok := m.triggers[id]
	return &t, ok
}

func (m *memory) HostByName(host string) (*model.Host, bool) {
	at := model.Interface{Type: model.AgentInterface, Main: true, Address: "10.0.0.1", IP: "10.0.0.1", Port: "10050"}
	return &model.Host{ID: 3, Host: host, Name: strings.ToUpper(host), Interfaces: []model.Interface{at}}, host != "gone"
}

func (m *memory) ItemOf(host, key string) (*model.Item, bool) {
	item := &model.Item{ID: 5, Key: key, Name: "Item " + key, Units: "B", ValueType: model.Uint, Description: "about " + key}
	if key == "text" {
		item.ID, item.ValueType, item.Units = 6, model.Text, ""
	}
	return item, host != "gone"
}

func (m *memory) LastText(_ context.Context, item model.ItemID, at int64) (string, bool) {
	switch {
	case item == 6:
		return "some text", true
	case at > 100*second:
		return "4096", true
	}
	return "2048", true
}

func (m *memory) EvaluateText(_ context.Context, expression string, at int64) (string, error) {
	if strings.Contains(expression, "bad") {
		return "", errors.New("bad")
	}
	return fmt.Sprintf("<%s@%d>", expression, at/second), nil
}

// open returns a log over m with a clock that stands still until *now is moved.
func open(t *testing.T, m *memory) (*Log, *time.Time) {
	t.Helper()
	now := time.Unix(200, 0)
	l, err := Open(t.Context(), Options{Store: m, Objects: m, Values: m, Expressions: m, Zone: time.UTC, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return l, &now
}

func problem(id model.TriggerID, at int64) model.StateChange {
	return model.StateChange{TriggerID: id, At: at * second, Problem: true, Event: true}
}

func recovery(id model.TriggerID, at int64) model.StateChange {
	return model.StateChange{TriggerID: id, At: at * second, Event: true}
}

func TestRecord_problemsAndRecoveries(t *testing.T) {
	m := &memory{loaded: Loaded{LastEventID: 40, Evaluated: 7}, triggers: map[model.TriggerID]model.Trigger{
		1: {ID: 1, HostID: 9, Severity: model.High, Name: "one", Tags: []model.Tag{{Name: "a", Value: "b"}}},
	}}
	l, _ := open(t, m)
	changed, unsubscribe := l.Subscribe()
	if err := l.Record(t.Context(), 8, []model.StateChange{problem(1, 100), problem(1, 101), problem(2, 101), recovery(1, 102)}); err != nil {
		t.Fatal(err)
	}
	if len(m.records) != 1 {
		t.Fatalf("%d transactions, want 1", len(m.records))
	}
	r := m.records[0]
	var ids, closes []uint64
	for _, e := range r.Events {
		ids, closes = append(ids, uint64(e.ID)), append(closes, uint64(e.ProblemID))
	}
	if !slices.Equal(ids, []uint64{41, 42, 43, 44, 45}) || !slices.Equal(closes, []uint64{0, 0, 0, 41, 42}) {
		t.Errorf("ids %v close %v", ids, closes)
	}
	last := r.Events[4]
	if last.Name != "one" || last.Severity != model.High || last.HostID != 9 || last.At != 102*second || len(last.Tags) != 1 || last.Problem {
		t.Errorf("recovery %+v", last)
	}
	want := []model.TriggerState{{TriggerID: 1, ChangedAt: 102 * second}, {TriggerID: 2, Problem: true, ChangedAt: 101 * second, OpenProblem: 43}}
	if !slices.Equal(r.States, want) || r.Evaluated != 8 {
		t.Errorf("states %+v at %d", r.States, r.Evaluated)
	}
	if open := l.Problems(); len(open) != 1 || open[0].ID != 43 || open[0].Name != "trigger 2" {
		t.Errorf("open %+v", open)
	}
	select {
	case <-changed:
	default:
		t.Error("the subscriber heard nothing")
	}
	unsubscribe()
	if err := l.Record(t.Context(), 9, []model.StateChange{recovery(2, 103)}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
		t.Error("heard something after the end")
	default:
	}
}

// TestRecord_endsNotBeforeStart: a timer made the problem at 100, and the value that ends it is of 97; the other problem of the trigger is older.
func TestRecord_endsNotBeforeStart(t *testing.T) {
	m := &memory{}
	l, _ := open(t, m)
	if err := l.Record(t.Context(), 1, []model.StateChange{problem(1, 90), problem(1, 100), recovery(1, 97)}); err != nil {
		t.Fatal(err)
	}
	starts, ends := map[model.EventID]int64{}, []int64{}
	for _, e := range m.records[0].Events {
		if e.Problem {
			starts[e.ID] = e.At
			continue
		}
		ends = append(ends, e.At/second)
		if e.At < starts[e.ProblemID] {
			t.Errorf("a problem of %d ends at %d", starts[e.ProblemID]/second, e.At/second)
		}
	}
	if !slices.Equal(ends, []int64{97, 100}) || len(l.Problems()) != 0 {
		t.Errorf("the ends are %v", ends)
	}
}

func TestRecord_writesTheLSNOnceASecond(t *testing.T) {
	m := &memory{}
	l, now := open(t, m)
	for lsn := range model.LSN(50) {
		*now = now.Add(100 * time.Millisecond)
		changes := []model.StateChange{{TriggerID: 1, At: 1, Error: fmt.Sprint("failure ", lsn)}}
		if err := l.Record(t.Context(), lsn+1, changes); err != nil {
			t.Fatal(err)
		}
	}
	if len(m.records) != 5 {
		t.Errorf("%d transactions in 5 s, want 5", len(m.records))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	last := m.records[len(m.records)-1]
	if last.Evaluated != 50 || len(last.States) != 1 || last.States[0].Error != "failure 49" {
		t.Errorf("at the end %+v", last)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Record(t.Context(), 51, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestRecord_storeFails(t *testing.T) {
	m := &memory{}
	l, _ := open(t, m)
	m.err = errors.New("disk full")
	if err := l.Record(t.Context(), 1, []model.StateChange{problem(1, 1)}); !errors.Is(err, m.err) {
		t.Fatalf("error %v", err)
	}
	if len(l.Problems()) != 0 || l.Evaluated() != 0 {
		t.Error("something is shown that is not stored")
	}
	m.err = nil
	if err := l.Record(t.Context(), 2, []model.StateChange{problem(2, 2)}); err != nil {
		t.Fatal(err)
	}
	if len(m.records) != 1 || len(m.records[0].Events) != 2 || m.records[0].Evaluated != 2 || len(l.Problems()) != 2 {
		t.Errorf("after the failure %+v", m.records)
	}
}

func TestRecord_blocksWhileTooMuchWaits(t *testing.T) {
	m := &memory{}
	l, _ := open(t, m)
	var many []model.StateChange
	for i := range maxPending + 1 {
		many = append(many, problem(model.TriggerID(i+1), 1))
	}
	m.err = errors.New("disk full")
	ctx, cancel := context.WithCancel(t.Context())
	m.onRecord = cancel
	if err := l.Record(ctx, 1, many); !errors.Is(err, context.Canceled) || !errors.Is(err, m.err) {
		t.Fatalf("error %v", err)
	}
	calls := 0
	m.onRecord = func() {
		if calls++; calls == 2 {
			m.err = nil
		}
	}
	if err := l.Record(t.Context(), 2, nil); err != nil {
		t.Fatal(err)
	}
	if len(m.records) != 1 || len(m.records[0].Events) != len(many) {
		t.Errorf("%d transactions", len(m.records))
	}
}

func TestRecord_correlation(t *testing.T) {
	m := &memory{triggers: map[model.TriggerID]model.Trigger{
		1: {ID: 1, Name: "one", Expression: "last(/h/k)>1", CorrelationTag: "v", Tags: []model.Tag{{Name: "v", Value: "{ITEM.VALUE}"}, {Name: "w", Value: "x"}}},
	}}
	l, now := open(t, m)
	*now = now.Add(time.Hour)
	if err := l.Record(t.Context(), 1, []model.StateChange{problem(1, 50), problem(1, 60), problem(1, 150)}); err != nil {
		t.Fatal(err)
	}
	f := func(c model.StateChange, open int, isProblem bool) {
		t.Helper()
		*now = now.Add(time.Hour)
		if err := l.Record(t.Context(), 2, []model.StateChange{c}); err != nil {
			t.Fatal(err)
		}
		s, _ := l.State(1)
		if n := l.OpenProblems(1); n != open || s.Problem != isProblem || (s.OpenProblem != 0) != isProblem {
			t.Errorf("%d open problems, state %+v; want %d, %v", n, s, open, isProblem)
		}
	}
	f(recovery(1, 160), 2, true) // the value is 4096 from 100 s on, 2048 before
	f(recovery(1, 170), 2, true)
	f(recovery(1, 70), 0, false)
	f(recovery(1, 71), 0, false)
}

func TestRecord_boundsProblemsOfATrigger(t *testing.T) {
	m := &memory{}
	l, _ := open(t, m)
	var many []model.StateChange
	for range maxPerTrigger + 5 {
		many = append(many, problem(1, 1))
	}
	if err := l.Record(t.Context(), 1, many); err != nil {
		t.Fatal(err)
	}
	if n := l.OpenProblems(1); n != maxPerTrigger {
		t.Errorf("%d open problems, want %d", n, maxPerTrigger)
	}
}

func TestOpen_continues(t *testing.T) {
	m := &memory{loaded: Loaded{
		LastEventID: 10, Evaluated: 5, States: []model.TriggerState{{TriggerID: 1, Problem: true, OpenProblem: 8}, {TriggerID: 2, Error: "why"}},
		Problems: []model.Problem{{Event: model.Event{ID: 8, TriggerID: 1, Problem: true, Name: "old"}}, {Event: model.Event{ID: 7, TriggerID: 1, Problem: true}}},
	}}
	l, _ := open(t, m)
	if l.Evaluated() != 5 || len(l.States()) != 2 || l.OpenProblems(1) != 2 {
		t.Error("the loaded state is not there")
	}
	change := func(id model.EventID) bool {
		p := model.Problem{Event: model.Event{ID: id, Severity: model.Disaster}, Acknowledged: true, SuppressedUntil: model.Forever}
		return l.Update(&p)
	}
	p := func() model.Problem { return l.Problems()[0] }
	if !change(8) || change(99) || !p().Acknowledged || p().Severity != model.Disaster || p().SuppressedUntil != model.Forever || p().Name != "old" {
		t.Errorf("a changed problem is %+v", p())
	}
	one := model.StateChange{TriggerID: 1, At: 9, Problem: true, Event: true, Closes: 7}
	foreign := model.StateChange{TriggerID: 2, At: 9, Event: true, Closes: 8}
	if err := l.Record(t.Context(), 6, []model.StateChange{one, foreign}); err != nil {
		t.Fatal(err)
	}
	if e := m.records[0].Events; len(e) != 1 || e[0].ID != 11 || e[0].ProblemID != 7 {
		t.Errorf("events %+v", e)
	}
	if err := l.Forget(t.Context(), []model.TriggerID{1}); err != nil {
		t.Fatal(err)
	}
	if len(l.Problems()) != 0 || len(l.States()) != 1 {
		t.Error("a deleted trigger is still there")
	}
}

func TestDescribe_macros(t *testing.T) {
	m := &memory{}
	for text, want := range map[string]string{
		"plain":                              "plain",
		"{HOST.NAME} {HOST.HOST2} {HOST.ID}": "H other 3",
		"{HOSTNAME}":                         "h",
		"{ITEM.VALUE} {ITEM.LASTVALUE}":      "2 KB 4 KB",
		"{ITEM.VALUE2} {ITEM.NAME2} {ITEM.KEY1} {ITEM.ID1} {ITEM.DESCRIPTION1}":                "some text Item text key[a] 5 about key[a]",
		"{ITEM.VALUE9} {HOST.NAME4} {ITEM.NAME3}":                                              "*UNKNOWN* *UNKNOWN* *UNKNOWN*",
		"{TRIGGER.NAME} {TRIGGER.ID} {TRIGGER.SEVERITY} {TRIGGER.NSEVERITY}":                   "The name 1 average 3",
		"{TRIGGER.STATUS} {TRIGGER.VALUE} {TRIGGER.URL} {TRIGGER.DESCRIPTION}":                 "PROBLEM 1 http://x note",
		"{TRIGGER.EXPRESSION.RECOVERY}":                                                        "last(/h/r)=0",
		"{EVENT.ID} {EVENT.DATE} {EVENT.TIME} {EVENT.TIMESTAMP}":                               "1 1970.01.01 00:01:40 100",
		"{EVENT.SEVERITY} {EVENT.NSEVERITY} {EVENT.STATUS} {EVENT.VALUE}":                      "average 3 PROBLEM 1",
		"{?avg(/{HOST.HOST}/key[a],1h)} x":                                                     "<avg(/h/key[a],1h)@100> x",
		`{?count(//k,1h,,"}")}`:                                                                `<count(/h/k,1h,,"}")@100>`,
		"{{ITEM.VALUE}.fmtnum(2)} {{ITEM.NAME}.uppercase()} {{HOST.HOST}.nope()} {{X}.btoa()}": "2048.00 ITEM KEY[A] *UNKNOWN* {{X}.btoa()}",
		"{?bad}": "*UNKNOWN*",
		"{$USER} {#LLD} {UNKNOWN.THING} {EVENT.NOPE} {TRIGGER.X} {ITEM.STATE}": "{$USER} {#LLD} {UNKNOWN.THING} {EVENT.NOPE} {TRIGGER.X} {ITEM.STATE}",
		"{ {HOST.NAME": "{ {HOST.NAME",
		"a}b{":         "a}b{",
		"{}":           "{}",
	} {
		m.triggers = map[model.TriggerID]model.Trigger{1: {
			ID: 1, Name: "The name", EventName: text, Severity: model.Average, URL: "http://x", Comments: "note", Recovery: "last(/h/r)=0",
			Expression: "last(/h/key[a])>1 and last(/other/text)<>last(/gone/x) or last(/gone/x)=2",
		}}
		l, _ := open(t, m)
		e := model.Event{ID: 1, TriggerID: 1, At: 100 * second, Problem: true}
		l.describe(t.Context(), &e)
		if e.Name != want {
			t.Errorf("%s:\n got %s\nwant %s", text, e.Name, want)
		}
	}
}

func TestDescribe_isBounded(t *testing.T) {
	m := &memory{triggers: map[model.TriggerID]model.Trigger{1: {
		ID: 1, EventName: strings.Repeat("{HOST.NAME}ä", 2000), Expression: "last(/h/k)", Tags: []model.Tag{{Name: strings.Repeat("ä", 200), Value: "v"}},
	}}}
	l, _ := open(t, m)
	e := model.Event{ID: 1, TriggerID: 1, Problem: true}
	l.describe(t.Context(), &e)
	if len(e.Name) > maxNameBytes || len(e.Tags[0].Name) != 254 {
		t.Errorf("name of %d bytes, tag of %d", len(e.Name), len(e.Tags[0].Name))
	}
}

func TestWithUnits(t *testing.T) {
	for _, c := range [][3]string{
		{"5", "", "5"},
		{"5.12345", "", "5.12"},
		{"0.00012345", "", "0.00012"},
		{"1023", "B", "1023 B"},
		{"1024", "B", "1 KB"},
		{"1536", "Bps", "1.5 KBps"},
		{"1500", "Hz", "1.5 KHz"},
		{"-2500000", "x", "-2.5 Mx"},
		{"99.5", "%", "99.5 %"},
		{"123456", "ms", "123456 ms"},
		{"1500", "!B", "1500 B"},
		{"59", "s", "59 s"},
		{"61", "s", "1m 1s"},
		{"90061", "uptime", "1d 1h"},
		{"3600", "s", "1h"},
		{"-120", "s", "-2m"},
		{"0", "unixtime", "1970-01-01 00:00:00 UTC"},
		{"text", "B", "text B"},
		{"NaN", "", "NaN"},
		{"18446744073709551615", "B", "16384 PB"},
		{"0.5", "s", "0.5 s"},
	} {
		if got := withUnits(c[0], c[1]); got != c[2] {
			t.Errorf("%s in %q is %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"{HOST.NAME1}", "{?last(/h/k)}", "{{ITEM.VALUE}.regsub(a,b)}", `{?"`, "{{{{", "}{", "{ITEM.VALUE9}{EVENT.ID}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := &memory{triggers: map[model.TriggerID]model.Trigger{1: {ID: 1, EventName: text, OpData: text, Expression: "last(/h/k)"}}}
		l, _ := open(t, m)
		e := model.Event{ID: 1, TriggerID: 1, Problem: true}
		l.describe(t.Context(), &e)
		if len(e.Name) > maxNameBytes {
			t.Fatalf("name of %d bytes", len(e.Name))
		}
	})
}

// TestRecord_pausesBetweenFailures lets much wait for a store that fails slowly: it is not tried with every batch.
func TestRecord_pausesBetweenFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		l, err := Open(t.Context(), Options{Store: m, Objects: m})
		if err != nil {
			t.Fatal(err)
		}
		m.err = errors.New("disk full")
		tries := 0
		m.onRecord = func() { tries++; time.Sleep(time.Second) }
		var many []model.StateChange
		for i := range eagerEvents + 1 {
			many = append(many, problem(model.TriggerID(i+1), 1))
		}
		for lsn := range model.LSN(100) {
			if err := l.Record(t.Context(), lsn+1, many); !errors.Is(err, m.err) {
				t.Fatalf("error %v", err)
			}
			many = nil
			time.Sleep(100 * time.Millisecond)
		}
		if tries < 2 || tries > 4 {
			t.Errorf("tried %d times in 10 s, want a pause of four times the second that a try takes", tries)
		}
		if tries = 0; l.Close() == nil || tries != 0 {
			t.Errorf("Close tried %d times to write what just failed", tries)
		}
		l.closed = false
		m.err, m.onRecord = nil, nil
		time.Sleep(5 * time.Second)
		if err := l.Record(t.Context(), 101, nil); err != nil || len(m.records) != 1 {
			t.Errorf("error %v, %d records after the pause", err, len(m.records))
		}
	})
}

// TestDescribe_foreignHosts: what a macro brings into an expression cannot make it read hosts that neither the text nor the trigger names.
func TestDescribe_foreignHosts(t *testing.T) {
	m := &memory{}
	for text, want := range map[string]string{
		"{?{TRIGGER.DESCRIPTION}}":                "*UNKNOWN*",
		"{?last(/h/k)+{TRIGGER.DESCRIPTION}}":     "*UNKNOWN*",
		"{?last(/secret/k)}":                      "<last(/secret/k)@100>",
		"{?last(/secret/k)+last(/{HOST.HOST}/k)}": "<last(/secret/k)+last(/h/k)@100>",
	} {
		m.triggers = map[model.TriggerID]model.Trigger{1: {ID: 1, EventName: text, Comments: "last(/secret/k)", Expression: "last(/h/key[a])>1"}}
		l, _ := open(t, m)
		e := model.Event{ID: 1, TriggerID: 1, At: 100 * second, Problem: true}
		l.describe(t.Context(), &e)
		if e.Name != want {
			t.Errorf("%s:\n got %s\nwant %s", text, e.Name, want)
		}
	}
}

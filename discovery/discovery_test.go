package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/confcache"
	"tidemark/confdb"
	"tidemark/model"
)

// template has every part of a rule.
const template = `
zabbix_export:
  version: '7.0'
  host_groups: [{name: G}]
  templates:
    - template: T
      name: T
      groups: [{name: TG}]
      macros: [{macro: '{$NOT}', value: '^lo$'}, {macro: '{$KEEP}', value: 7d}]
      items: [{name: Master, key: master, type: TRAP, value_type: TEXT}]
      discovery_rules:
        - name: Interfaces
          key: ifs
          type: DEPENDENT
          master_item: {key: master}
          lifetime: '{$KEEP}'
          enabled_lifetime_type: DISABLE_AFTER
          enabled_lifetime: 1h
          lld_macro_paths: [{lld_macro: '{#KIND}', path: $.kind}]
          preprocessing: [{type: JSONPATH, parameters: [$.ifs]}]
          filter:
            evaltype: FORMULA
            formula: A and (B or not C)
            conditions:
              - {macro: '{#IF}', value: '{$NOT}', operator: NOT_MATCHES_REGEX, formulaid: A}
              - {macro: '{#KIND}', operator: EXISTS, formulaid: B}
              - {macro: '{#IF}', value: ^x, formulaid: C}
          overrides:
            - name: quiet
              step: '2'
              filter: {conditions: [{macro: '{#IF}', value: ^veth, formulaid: A}]}
              operations:
                - {operationobject: ITEM_PROTOTYPE, operator: REGEXP, value: '^In ', status: DISABLED, delay: 5m, history: 1d, tags: [{tag: quiet, value: '1'}]}
                - {operationobject: TRIGGER_PROTOTYPE, severity: INFO, discover: NO_DISCOVER}
            - name: first
              step: '1'
              stop: STOP
              filter: {conditions: [{macro: '{#KIND}', value: ^virtual$, formulaid: A}]}
              operations: [{operationobject: ITEM_PROTOTYPE, operator: LIKE, value: Out, discover: NO_DISCOVER}]
          item_prototypes:
            - {name: 'In {#IF}', key: 'in[{#IF}]', type: TRAP, value_type: UNSIGNED, tags: [{tag: if, value: '{{#IF}.regsub("^([a-z]+)", \1)}'}]}
            - {name: 'Out {#IF}', key: 'out[{#IF}]', type: TRAP, value_type: UNSIGNED}
            - name: 'Rate {#IF}'
              key: 'rate[{#IF}]'
              type: DEPENDENT
              master_item: {key: 'in[{#IF}]'}
              value_type: FLOAT
              preprocessing: [{type: JSONPATH, parameters: ['$[?(@.name=="{#IF}")].v']}]
            - {name: Never, key: 'never[{#IF}]', type: TRAP, discover: NO_DISCOVER}
          trigger_prototypes:
            - {name: '{#IF} busy', expression: 'last(/T/in[{#IF}])>{$MAX:"{#IF}"} and last(/T/out[{#IF}])>0', priority: HIGH, tags: [{tag: if, value: '{#IF}'}], dependencies: [{name: '{#IF} down', expression: 'last(/T/in[{#IF}])=0'}]}
            - {name: '{#IF} down', expression: 'last(/T/in[{#IF}])=0'}
          graph_prototypes:
            - {name: 'Traffic {#IF}', graph_items: [{item: {host: T, key: 'in[{#IF}]'}}]}
  hosts:
    - {host: h, name: h, groups: [{name: G}], templates: [{name: T}]}
`

type ids struct{ last model.ItemID }

func (i *ids) NextItemID() (model.ItemID, error) {
	i.last++
	return i.last, nil
}

// bench is a database with its cache and an engine over both.
type bench struct {
	t      *testing.T
	db     *confdb.DB
	cache  *confcache.Cache
	engine *Engine
	now    time.Time
}

func newBench(t *testing.T, files ...string) *bench {
	t.Helper()
	ctx := context.Background()
	db, err := confdb.Open(ctx, t.TempDir(), confdb.Options{IDs: &ids{}})
	if err != nil {
		t.Fatal(err)
	}
	b := benchOf(t, db)
	for _, f := range files {
		b.load(f)
	}
	return b
}

// benchOf is a bench over a database, which is closed when the test ends.
func benchOf(t *testing.T, db *confdb.DB) *bench {
	t.Cleanup(func() { _ = db.Close() })
	b := &bench{t: t, db: db, cache: confcache.New(db, confcache.Options{}), now: time.Unix(1_700_000_000, 0)}
	b.engine = New(Options{Rules: func() Rules { return b.cache.Snapshot() }, Store: db, Now: func() time.Time { return b.now }})
	b.refresh()
	return b
}

func (b *bench) load(file string) {
	b.t.Helper()
	r, err := b.db.Import(context.Background(), "test", []byte(file), confdb.ImportOptions{DeleteMissing: true})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, m := range r.Remarks {
		if !strings.Contains(m.Reason, "no collector") {
			b.t.Errorf("line %d: %s: %s", m.Line, m.Path, m.Reason)
		}
	}
	b.refresh()
}

func (b *bench) refresh() {
	b.t.Helper()
	if _, err := b.cache.Refresh(context.Background()); err != nil {
		b.t.Fatal(err)
	}
}

// host returns a host's id by name.
func (b *bench) host(name string) model.HostID {
	b.t.Helper()
	h, ok := b.cache.Snapshot().Host(name)
	if !ok {
		b.t.Fatalf("there is no host %s", name)
	}
	return h.ID
}

// rule returns the rule of a host with a key.
func (b *bench) rule(host, key string) *model.Rule {
	b.t.Helper()
	rules := b.cache.Snapshot().Rules(b.host(host))
	for i := range rules {
		if rules[i].Key == key {
			return &rules[i]
		}
	}
	b.t.Fatalf("host %s has no rule %s", host, key)
	return nil
}

// give has the engine work on a value of a rule.
func (b *bench) give(host, key, text string) result {
	b.t.Helper()
	id := b.rule(host, key).ItemID
	r := b.engine.Process(context.Background(), id, []byte(text), "", b.now, b.now.UnixNano())
	b.engine.done[id] = r
	b.refresh()
	return r
}

// shows returns the discovered items and triggers of a host.
func (b *bench) shows(host string) []string {
	b.t.Helper()
	s := b.cache.Snapshot()
	var list []string
	state := func(on bool) string { return map[bool]string{true: "", false: " off"}[on] }
	for _, i := range s.Items(b.host(host)) {
		if i.DiscoveredBy == 0 {
			continue
		}
		text := fmt.Sprintf("%s %q%s", i.Key, i.Name, state(i.Enabled))
		for _, t := range i.Tags {
			text += fmt.Sprintf(" %s=%s", t.Name, t.Value)
		}
		if i.Interval > 0 {
			text += " " + i.Interval.String()
		}
		for _, st := range i.Steps {
			text += fmt.Sprint(" ", st.Params)
		}
		if i.MasterID != 0 {
			m, _ := s.Item(i.MasterID)
			text += " of " + m.Key
		}
		list = append(list, text)
	}
	for _, t := range s.TriggersOf(b.host(host)) {
		if t.DiscoveredBy != 0 {
			list = append(list, fmt.Sprintf("%s: %s %s%s depends %d", t.Name, t.Expression, t.Severity, state(t.Enabled), len(t.DependsOn)))
		}
	}
	slices.Sort(list)
	return list
}

func (b *bench) want(what, host string, want ...string) {
	b.t.Helper()
	got := b.shows(host)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		b.t.Errorf("%s:\n got  %s\n want %s", what, strings.Join(got, "\n      "), strings.Join(want, "\n      "))
	}
}

func interfaceOf(name, tag string) []string {
	return []string{
		fmt.Sprintf(`in[%s] "In %s" if=%s`, name, name, tag), fmt.Sprintf(`out[%s] "Out %s"`, name, name),
		fmt.Sprintf(`rate[%s] "Rate %s" [$[?(@.name=="%s")].v] of in[%s]`, name, name, name, name),
		fmt.Sprintf(`%s busy: last(/h/in[%s])>{$MAX:"%s"} and last(/h/out[%s])>0 high depends 1`, name, name, name, name),
		fmt.Sprintf(`%s down: last(/h/in[%s])=0 not classified depends 0`, name, name),
	}
}

func TestDiscover(t *testing.T) {
	b := newBench(t, template)
	if r := b.give("h", "ifs", `[{"{#IF}":"eth0"},{"{#IF}":"lo"},{"{#IF}":"xen","kind":7},{"{#IF}":"xfs"}]`); r.reason != "" || !r.applied {
		t.Fatalf("refused: %+v", r)
	}
	eth := interfaceOf("eth0", "eth")
	b.want("the filter takes eth0 and xen", "h", append(interfaceOf("xen", "xen"), eth...)...)
	eth0, _ := b.cache.Snapshot().ItemByKey(b.host("h"), "in[eth0]")
	if got := eth0.Labels.Get("if"); got != "eth0" {
		t.Errorf("label if is %q, want eth0", got)
	}

	b.give("h", "ifs", `{"data":[{"{#IF}":"eth0"},{"{#IF}":"veth1"},{"{#IF}":"br0","kind":"virtual"}]}`)
	lost := interfaceOf("xen", "xen")
	quiet := []string{
		`in[veth1] "In veth1" off if=veth quiet=1 5m0s`, `out[veth1] "Out veth1"`, `rate[veth1] "Rate veth1" off [$[?(@.name=="veth1")].v]`,
		`in[br0] "In br0" if=br`, `rate[br0] "Rate br0" [$[?(@.name=="br0")].v] of in[br0]`, `br0 down: last(/h/in[br0])=0 not classified depends 0`,
	}
	quiet[2] = `rate[veth1] "Rate veth1" [$[?(@.name=="veth1")].v] of in[veth1]`
	b.want("overrides, and xen is lost but works", "h", slices.Concat(eth, quiet, lost)...)
	if again, _ := b.cache.Snapshot().ItemByKey(b.host("h"), "in[eth0]"); again.ID != eth0.ID {
		t.Errorf("in[eth0] has a new id")
	}

	b.now = b.now.Add(2 * time.Hour)
	b.engine.Expire(context.Background())
	b.refresh()
	for i := range lost {
		lost[i] = strings.NewReplacer(`" [`, `" off [`, `" if`, `" off if`, ` high`, ` high off`, ` classified`, ` classified off`).Replace(lost[i])
		if strings.HasPrefix(lost[i], "out") {
			lost[i] += " off"
		}
	}
	b.want("an hour later xen is off", "h", slices.Concat(eth, quiet, lost)...)

	b.give("h", "ifs", `[{"{#IF}":"eth0"},{"{#IF}":"veth1"},{"{#IF}":"br0","kind":"virtual"},{"{#IF}":"xen","kind":""}]`)
	b.want("xen is back", "h", slices.Concat(eth, quiet, interfaceOf("xen", "xen"))...)

	b.give("h", "ifs", `[{"{#IF}":"eth0"}]`)
	b.now = b.now.Add(8 * 24 * time.Hour)
	b.engine.Expire(context.Background())
	b.refresh()
	b.want("a week later all but eth0 is gone", "h", eth...)
}

func TestDiscover_brokenChangesNothing(t *testing.T) {
	b := newBench(t, template)
	b.give("h", "ifs", `[{"{#IF}":"eth0"}]`)
	revision := b.cache.Snapshot().Revision()
	last := ""
	for text, want := range map[string]string{
		``:                            "the value is empty",
		`[{"{#IF}":"eth1"}`:           "the value ends at byte",
		`[{"{#IF}":"eth1"},`:          "the value ends at byte",
		`[{"{#IF}":"eth1"}, 7]`:       "element 2",
		`[{"{#IF}":"eth1"}, null]`:    "element 2",
		`{"rows":[]}`:                 `without the field "data"`,
		`{"data":{}}`:                 "no JSON array",
		`"x"`:                         "no JSON array",
		`[{"{#IF}":"eth1"}] x`:        "behind its end",
		`[{"{#IF}":"eth1",}]`:         "no JSON",
		`[{"{#IF}":"eth1"}` + "\x00]": "no JSON",
	} {
		r := b.give("h", "ifs", text)
		if !strings.Contains(r.reason, want) {
			t.Errorf("%s: reason %q, want %q", text, r.reason, want)
		}
		last = r.reason
	}
	b.want("after broken values", "h", interfaceOf("eth0", "eth")...)
	if got := b.cache.Snapshot().Revision(); got != revision {
		t.Errorf("revision %d, want %d", got, revision)
	}
	rules, err := b.db.DiscoveryRules(context.Background(), 0)
	if err != nil || len(rules) != 1 || rules[0].Error == "" || !strings.Contains(last, rules[0].Error) {
		t.Errorf("rules %+v %v, want one with the error %q", rules, err, last)
	}
}

// A value that has lost most of its elements is held back twice, and taken when it comes a third time.
func TestDiscover_lossOfMost(t *testing.T) {
	b := newBench(t, template)
	list := func(n int) string {
		var rows []string
		for i := range n {
			rows = append(rows, fmt.Sprintf(`{"{#IF}":"eth%d"}`, i))
		}
		return "[" + strings.Join(rows, ",") + "]"
	}
	b.give("h", "ifs", list(20))
	before := b.shows("h")
	for i := range 2 {
		if r := b.give("h", "ifs", list(i)); !strings.Contains(r.reason, fmt.Sprintf("the value has %d elements, the one before had 20", i)) {
			t.Errorf("value %d that lost most: %+v", i+1, r)
		}
	}
	if got := b.shows("h"); !slices.Equal(got, before) {
		t.Errorf("a value that was held back changed %v into %v", before, got)
	}
	if r := b.give("h", "ifs", list(20)); r.reason != "" || r.held != 0 {
		t.Errorf("when all are back: %+v", r)
	}
	for i := range 3 {
		r := b.give("h", "ifs", list(4))
		if (r.reason == "") != (i == 2) {
			t.Errorf("value %d in a row: %+v", i+1, r)
		}
	}
	if r := b.give("h", "ifs", list(1)); r.reason != "" {
		t.Errorf("few elements are not guarded: %+v", r)
	}
}

func TestDiscover_refused(t *testing.T) {
	b := newBench(t, template)
	b.engine.o.MaxObjects = 12
	b.give("h", "ifs", `[{"{#IF}":"a"},{"{#IF}":"a"},{"{#ZZ}":"b"}]`)
	rules, err := b.db.DiscoveryRules(context.Background(), 0)
	// The second a repeats three items and two triggers; of the element without {#IF}, which the filter does not take, nothing is made.
	if err != nil || !strings.Contains(rules[0].Error, "5 found objects cannot be made: an item with the key in[a] exists already") {
		t.Errorf("error %q %v", rules[0].Error, err)
	}
	b.give("h", "ifs", `[{"{#IF}":"a"},{"{#IF}":"b"},{"{#IF}":"c"}]`)
	if rules, err = b.db.DiscoveryRules(context.Background(), 0); err != nil || !strings.Contains(rules[0].Error, "one rule may make at most 12 objects, and 3 are beyond that") {
		t.Errorf("error %q %v", rules[0].Error, err)
	}
	if got := len(b.shows("h")); got != 12 {
		t.Errorf("%d objects, want 12", got)
	}
}

// counting counts what reaches the store.
type counting struct {
	Store
	mu    sync.Mutex
	calls int
	fail  error
}

func (c *counting) Discover(ctx context.Context, x *model.Discovery) (*model.Discovered, error) {
	c.mu.Lock()
	c.calls++
	fail := c.fail
	c.mu.Unlock()
	if fail != nil {
		return nil, fail
	}
	return c.Store.Discover(ctx, x)
}

func (c *counting) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

func (c *counting) setFail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = err
}

func TestTake_unchangedCostsNothing(t *testing.T) {
	b := newBench(t, template)
	store := &counting{Store: b.db}
	b.engine.o.Store = store
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- b.engine.Run(ctx) }()
	rule := b.rule("h", "ifs")
	item, _ := b.cache.Snapshot().Item(rule.ItemID)
	take := func(text string, calls int) {
		t.Helper()
		b.engine.Take(item, []byte(text), "", nil)
		b.wait(func() bool { return len(b.engine.waiting) == 0 && len(b.engine.busy) == 0 })
		b.refresh()
		if got := store.count(); got != calls {
			t.Fatalf("%d calls of the store, want %d", got, calls)
		}
	}
	take(`[{"{#IF}":"eth0"}]`, 1)
	for range 10_000 {
		b.engine.Take(item, []byte(`[{"{#IF}":"eth0"}]`), "", nil)
	}
	take(`[{"{#IF}":"eth0"}]`, 1)
	take(`[{"{#IF}":"eth1"}]`, 2)
	if err := b.db.SetHostEnabled(ctx, rule.HostID, true); err != nil {
		t.Fatal(err)
	}
	b.refresh()
	take(`[{"{#IF}":"eth1"}]`, 3) // the host changed, so the rule may have
	take(`[{"{#IF}":"eth1"}]`, 3)
	store.setFail(errors.New("disk full"))
	b.engine.Take(item, []byte(`[{"{#IF}":"eth2"}]`), "", nil)
	b.wait(func() bool { return store.count() == 4 && len(b.engine.waiting) == 1 && len(b.engine.busy) == 0 })
	store.setFail(nil)
	b.wait(func() bool { return len(b.engine.waiting) == 0 && len(b.engine.busy) == 0 }) // It is tried again by itself.
	b.refresh()
	take(`[{"{#IF}":"eth2"}]`, 5)
	if got := b.engine.unchanged.Get(); got < 10_000 {
		t.Errorf("%d unchanged values", got)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// wait waits for a condition on the engine.
func (b *bench) wait(ok func() bool) {
	b.t.Helper()
	for range 60_000 {
		b.engine.mu.Lock()
		fits := ok()
		b.engine.mu.Unlock()
		if fits {
			return
		}
		time.Sleep(time.Millisecond)
	}
	b.t.Fatal("waited a minute in vain")
}

func TestTake_newestWins(t *testing.T) {
	b := newBench(t, template)
	item, _ := b.cache.Snapshot().Item(b.rule("h", "ifs").ItemID)
	for i := range 100 {
		b.engine.Take(item, fmt.Appendf(nil, `[{"{#IF}":"e%d"}]`, i), "", nil)
	}
	b.engine.Take(item, nil, "cannot be reached", nil)
	b.engine.Take(item, []byte(`[{"{#IF}":"eth0"}]`), "", nil)
	id, p, ok := b.engine.next()
	if !ok || id != item.ID || string(p.text) != `[{"{#IF}":"eth0"}]` || len(b.engine.waiting) != 0 || b.engine.bytes != 0 {
		t.Errorf("%d %q, %d waiting", id, p.text, len(b.engine.waiting))
	}
}

func TestDiscover_changedTemplate(t *testing.T) {
	b := newBench(t, template)
	b.give("h", "ifs", `[{"{#IF}":"eth0"}]`)
	before, _ := b.cache.Snapshot().ItemByKey(b.host("h"), "in[eth0]")
	b.load(strings.NewReplacer("name: 'In {#IF}'", "name: 'Input {#IF}'", "value: '^In '", "value: '^In'").Replace(template))
	if after, ok := b.cache.Snapshot().ItemByKey(b.host("h"), "in[eth0]"); !ok || after.ID != before.ID || after.Name != "Input eth0" {
		t.Errorf("after the template changed: %+v", after)
	}
	b.load(strings.Replace(template, "name: T}]}", "name: T}], status: DISABLED}", 1))
	// Without its rules a template leaves nothing of them.
	cut := strings.Index(template, "      discovery_rules:")
	b.load(template[:cut] + template[strings.Index(template, "  hosts:\n"):])
	b.want("without rules", "h")
	if n := len(b.cache.Snapshot().Rules(b.host("h"))); n != 0 {
		t.Errorf("%d rules are left", n)
	}
}

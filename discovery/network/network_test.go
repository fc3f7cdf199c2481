package network

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidemark/discovery"
	"tidemark/model"
)

// world is what answers: texts by "address type port".
type world struct {
	mu     sync.Mutex
	up     map[string]string
	asked  int
	found  []string
	stored map[string]model.NetHost
	ended  int
	names  []string
}

func (w *world) Probe(_ context.Context, p Probe) (string, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	value, up := w.up[fmt.Sprintf("%s %s %d", p.Address, p.Check.Type, p.Port)]
	return value, up, nil
}

func (w *world) Name(_ context.Context, a netip.Addr) string { return "name-of-" + a.String() }

func (w *world) NetHosts(_ context.Context, rule string) ([]model.NetHost, int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []model.NetHost
	for _, h := range w.stored {
		if h.Rule == rule {
			list = append(list, h)
		}
	}
	return list, 0, nil
}

func (w *world) RecordNetHost(_ context.Context, h *model.NetHost) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := *h
	c.Services = slices.Clone(h.Services)
	w.stored[h.Rule+"/"+h.Ident] = c
	return 1, nil
}

func (w *world) EndNetScan(context.Context, string, int64, int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended++
	return nil
}

func (w *world) Found(_ context.Context, f *Found) (model.HostID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range f.Events {
		w.found = append(w.found, strings.Join(strings.Fields(fmt.Sprint(f.Host.Ident, " ", e.IP, " ", e.Object, " ", e.Check, " ", e.Status)), " "))
	}
	w.names = append(w.names, f.HostName+"/"+f.VisibleName)
	return 7, nil
}

func (w *world) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.found
	w.found = nil
	slices.Sort(list)
	return list
}

func (w *world) questions() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

func (w *world) set(up map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.up = up
}

// look has the clock run for one delay and compares the events.
func (w *world) look(t *testing.T, want ...string) {
	t.Helper()
	time.Sleep(time.Hour)
	synctest.Wait()
	slices.Sort(want)
	if got := w.take(); !slices.Equal(got, want) {
		t.Errorf("events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func run(t *testing.T, w *world, rule Rule, f func(*Scanner)) {
	t.Helper()
	s := New(Options{Prober: w, Store: w, Handler: w})
	if err := s.Apply([]Rule{rule}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { _ = s.Run(ctx) })
	synctest.Wait()
	f(s)
	cancel()
	done.Wait()
}

// What comes and goes is told once, what stays with each look; a new scanner goes on where the old one stopped.
func TestScanner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{stored: make(map[string]model.NetHost), up: map[string]string{"10.0.0.2 ssh 22": "", "10.0.0.2 agent 10050": "Linux"}}
		rule := Rule{Name: "r", Ranges: "10.0.0.1-3", Delay: "1h", Checks: []Check{{Type: "ssh"}, {Type: "agent", Key: "system.uname", Name: "uname"}}, HostName: "dns", VisibleName: "uname"}
		run(t, w, rule, func(s *Scanner) {
			// The first look is at once, because there never was one.
			want := []string{
				"10.0.0.2 10.0.0.2 service ssh discovered", "10.0.0.2 10.0.0.2 service ssh up", "10.0.0.2 10.0.0.2 service uname discovered", "10.0.0.2 10.0.0.2 service uname up",
				"10.0.0.2 10.0.0.2 host discovered", "10.0.0.2 10.0.0.2 host up",
			}
			slices.Sort(want)
			got := w.take()
			w.mu.Lock()
			if !slices.Equal(got, want) || w.asked != 6 || w.names[0] != "name-of-10.0.0.2/Linux" {
				t.Errorf("%d questions, %v: %q", w.asked, w.names, got)
			}
			w.mu.Unlock()
			w.look(t, "10.0.0.2 10.0.0.2 service ssh up", "10.0.0.2 10.0.0.2 service uname up", "10.0.0.2 10.0.0.2 host up")
			w.set(map[string]string{"10.0.0.2 agent 10050": "Linux 7"})
			w.look(t, "10.0.0.2 10.0.0.2 service ssh lost", "10.0.0.2 10.0.0.2 service ssh down", "10.0.0.2 10.0.0.2 service uname up", "10.0.0.2 10.0.0.2 host up")
			w.mu.Lock()
			if h := w.stored["r/10.0.0.2"]; h.HostID != 7 || !h.Up || h.Services[0].Up || h.Services[1].Value != "Linux 7" {
				t.Errorf("%+v", h)
			}
			w.mu.Unlock()
			if st := s.Status(); len(st) != 1 || st[0].Hosts != 1 || st[0].Up != 1 || st[0].Done != 3 || st[0].Addresses != 3 || st[0].Running || st[0].Error != "" {
				t.Errorf("%+v", st)
			}
		})
		w.set(nil)
		run(t, w, rule, func(*Scanner) {
			want := []string{"10.0.0.2 10.0.0.2 service ssh down", "10.0.0.2 10.0.0.2 service uname lost", "10.0.0.2 10.0.0.2 service uname down", "10.0.0.2 10.0.0.2 host lost", "10.0.0.2 10.0.0.2 host down"}
			slices.Sort(want)
			if got := w.take(); !slices.Equal(got, want) {
				t.Errorf("after a restart: %q", got)
			}
		})
	})
}

// A value tells hosts apart: two addresses of one device are one host, which is up while one of them answers.
func TestScanner_unique(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{stored: make(map[string]model.NetHost), up: map[string]string{"10.0.0.1 snmp 161": "core-1", "10.0.0.2 snmp 161": "core-1"}}
		rule := Rule{Name: "r", Ranges: "10.0.0.1-2", Delay: "1h", AtOnce: 1, Checks: []Check{{Type: "snmp", Key: ".1.3.6.1.2.1.1.5.0", Name: "name"}}, Unique: "name", HostName: "name"}
		run(t, w, rule, func(s *Scanner) {
			w.take()
			w.mu.Lock()
			if len(w.stored) != 1 || len(w.stored["r/core-1"].Services) != 2 {
				t.Errorf("%+v", w.stored)
			}
			w.mu.Unlock()
			w.set(map[string]string{"10.0.0.2 snmp 161": "core-1"})
			w.look(t, "core-1 10.0.0.1 service name lost", "core-1 10.0.0.1 service name down", "core-1 10.0.0.1 host up", "core-1 10.0.0.2 service name up", "core-1 10.0.0.2 host up")
			if s.ScanNow("r") != nil || s.ScanNow("other") == nil {
				t.Error("ScanNow")
			}
			synctest.Wait()
			if got := w.take(); len(got) == 0 {
				t.Error("nothing is looked for at once")
			}
			before := w.questions()
			off := rule
			off.Disabled = true
			if err := s.Apply([]Rule{off}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Hour)
			if w.questions() != before || s.ScanNow("r") == nil {
				t.Error("a rule that is off goes on")
			}
		})
	})
}

func TestCheckRules_mistakes(t *testing.T) {
	f := func(change func(*Rule), want string) {
		t.Helper()
		r := Rule{Name: "r", Ranges: "10.0.0.1", Checks: []Check{{Type: "icmp"}}}
		change(&r)
		if err := CheckRules([]Rule{r}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", r, err, want)
		}
	}
	f(func(r *Rule) { r.Name = "" }, "has the name")
	f(func(r *Rule) { r.Ranges = "x" }, "range")
	f(func(r *Rule) { r.Ranges = "10.0.0.0/8" }, "split the rule")
	f(func(r *Rule) { r.Delay = "1s" }, "delay is")
	f(func(r *Rule) { r.AtOnce = 1000 }, "at_once is 1000")
	f(func(r *Rule) { r.Forget = "1s" }, "forget is")
	f(func(r *Rule) { r.Checks = nil }, "0 checks")
	f(func(r *Rule) { r.Checks = []Check{{Type: "x"}} }, `type "x"`)
	f(func(r *Rule) { r.Checks = []Check{{Type: "tcp"}} }, "tcp needs ports")
	f(func(r *Rule) { r.Checks = []Check{{Type: "icmp", Ports: "1"}} }, "icmp has no ports")
	f(func(r *Rule) { r.Checks = []Check{{Type: "agent"}} }, "have a key")
	f(func(r *Rule) { r.Checks = []Check{{Type: "ssh", Key: "k"}} }, "have a key")
	f(func(r *Rule) { r.Checks = []Check{{Type: "ssh", SNMP: &discovery.SNMP{}}} }, "snmp is for")
	f(func(r *Rule) { r.Checks = []Check{{Type: "ssh", Ports: "9-1"}} }, "ports")
	f(func(r *Rule) { r.Checks = []Check{{Type: "ssh"}, {Type: "ssh", Ports: "2222"}} }, "two checks")
	f(func(r *Rule) { r.Checks = []Check{{Type: "ssh", Timeout: "1h"}} }, "timeout is")
	f(func(r *Rule) { r.Unique = "dns" }, "unique is dns")
	f(func(r *Rule) { r.HostName = "icmp" }, `host_name is "icmp"`)
	f(func(r *Rule) { r.Ranges, r.Checks = "10.0.0.0/16", []Check{{Type: "tcp", Ports: "1-100"}} }, "questions")
}

func TestConfig_secrets(t *testing.T) {
	const text = `
rules:
  - name: r
    ranges: 10.0.0.1
    checks: [{type: snmp, key: .1, snmp: {community: hush, auth_passphrase: '{$PASS}'}}]
actions:
  - name: a
    event: autoregistration
    operations: [{type: set_psk, identity: i, psk: 000102030405060708090a0b0c0d0e0f}]
`
	c, err := Parse([]byte(text))
	if err != nil || c.Check() != nil {
		t.Fatal(err, c.Check())
	}
	shown := c.Hidden()
	if got := shown.Rules[0].Checks[0].SNMP; got.Community != hidden || got.AuthPassphrase != "{$PASS}" || shown.Actions[0].Operations[0].PSK != hidden || c.Rules[0].Checks[0].SNMP.Community != "hush" {
		t.Errorf("%+v %+v", got, c.Rules[0].Checks[0].SNMP)
	}
	again, err := shown.WithSecretsOf(c)
	if err != nil || again.Rules[0].Checks[0].SNMP.Community != "hush" || again.Actions[0].Operations[0].PSK != c.Actions[0].Operations[0].PSK {
		t.Errorf("%+v %v", again, err)
	}
	if _, err := shown.WithSecretsOf(&Config{}); err == nil {
		t.Error("a hidden secret that is not known is taken")
	}
	objects, err := c.Objects()
	if err != nil {
		t.Fatal(err)
	}
	back, errs := FromObjects(append(objects, model.AlertObject{Kind: "rule", Name: "bad", Body: []byte("{")}))
	if len(errs) != 1 || len(back.Rules) != 1 || len(back.Actions) != 1 || back.Rules[0].Checks[0].SNMP.Community != "hush" {
		t.Errorf("%+v %v", back, errs)
	}
	if _, err := Parse([]byte("rules: [{nam: x}]")); err == nil || !strings.Contains(err.Error(), "nam") {
		t.Errorf("an unknown field: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("rules: [{name: r, ranges: 10.0.0.1, checks: [{type: icmp}]}]"))
	f.Add([]byte("actions: [{name: a, event: discovery, evaluation: A or B, conditions: [{field: ip, value: ::1}], operations: [{type: add_host}]}]"))
	f.Fuzz(func(_ *testing.T, text []byte) {
		c, err := Parse(text)
		if err != nil || c.Check() != nil {
			return
		}
		if set, err := discovery.CompileActions(c.Actions); err == nil {
			set.Fit(&discovery.HostEvent{Source: discovery.FromNetwork, IP: "10.0.0.1"}, &discovery.Outcome{})
		}
		_, _ = c.Hidden().WithSecretsOf(c)
	})
}

// The example of the page for users is a configuration.
func TestParse_page(t *testing.T) {
	page, err := os.ReadFile("../../docs/user/network-discovery.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	c, err := Parse([]byte(text))
	if err != nil || len(c.Rules) != 1 || len(c.Actions) != 3 {
		t.Fatalf("%+v %v", c, err)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

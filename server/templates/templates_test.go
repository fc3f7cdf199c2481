package templates_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tidemark/confcache"
	"tidemark/confdb"
	"tidemark/expr"
	"tidemark/model"
	"tidemark/server/templates"
)

type ids struct{ last model.ItemID }

func (i *ids) NextItemID() (model.ItemID, error) {
	i.last++
	return i.last, nil
}

func open(t *testing.T) *confdb.DB {
	t.Helper()
	d, err := confdb.Open(context.Background(), t.TempDir(), confdb.Options{IDs: &ids{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestFiles_import(t *testing.T) {
	d := open(t)
	reports, err := d.ImportBuiltin(context.Background(), templates.Files())
	if err != nil || len(reports) != 6 {
		t.Fatalf("%d reports, %v, want 6", len(reports), err)
	}
	for _, r := range reports {
		if len(r.Remarks) > 0 || r.Version != "6.0" {
			t.Errorf("report with remarks: %s", r)
		}
	}
	reports, err = d.ImportBuiltin(context.Background(), templates.Files())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range reports {
		if r.Changed() {
			t.Errorf("the second import changed something: %s", r)
		}
	}
}

// agentItems are what an agent declares on a machine with two filesystems, a disk and an interface.
func agentItems() []model.Item {
	var list []model.Item
	add := func(key string, labels ...string) {
		item := model.Item{Key: key}
		for i := 0; i+1 < len(labels); i += 2 {
			item.Labels = append(item.Labels, model.Label{Name: labels[i], Value: labels[i+1]})
		}
		list = append(list, item)
	}
	for _, key := range []string{
		"system.uptime", "system.localtime", "system.cpu.util[all,used,last]", "system.cpu.util[all,iowait,last]",
		"system.cpu.load[all,avg1]", "system.cpu.num", "vm.memory.size[pavailable]", "vm.oom", "system.swap.size[,pfree]",
		"system.swap.size[,total]", "proc.num[]", "kernel.maxproc", "kernel.openfiles", "kernel.maxfiles", "system.sw.os[name]",
		"system.pressure[memory,full,avg10]", "system.pressure[io,full,avg10]",
	} {
		add(key, "section", "x")
	}
	for _, name := range []string{"/", "/with, comma"} {
		quoted := name
		if strings.Contains(name, ",") {
			quoted = `"` + name + `"`
		}
		add("vfs.fs.size["+quoted+",pused]", "fsname", name, "mode", "pused")
		add("vfs.fs.inode["+quoted+",pfree]", "fsname", name, "mode", "pfree")
	}
	for _, instance := range []string{"10.0.0.1:27017", "[::1]:27017"} {
		quoted := instance
		if strings.Contains(instance, "[") {
			quoted = `"` + instance + `"`
		}
		for _, m := range []string{"requests", "errors", "time", "p95"} {
			add("mongo.instance["+quoted+","+m+"]", "instance", instance)
			add("mongo.shape["+quoted+",00ff,"+m+"]", "instance", instance, "fingerprint", "00ff", "namespace", "shop.orders", "command", "find", "shape", "find {a: ?}")
		}
	}
	add("vfs.dev.util[sda]", "devname", "sda")
	add("net.if.in[eth0,errors]", "ifname", "eth0")
	add("net.if.out[eth0,errors]", "ifname", "eth0")
	return list
}

func snapshot(t *testing.T, d *confdb.DB) *confcache.Snapshot {
	t.Helper()
	c := confcache.New(d, confcache.Options{})
	if _, err := c.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	return c.Snapshot()
}

func TestFiles_triggersOfAHost(t *testing.T) {
	ctx := context.Background()
	d := open(t)
	if _, err := d.ImportBuiltin(ctx, templates.Files()); err != nil {
		t.Fatal(err)
	}
	ours, _, err := d.RegisterHost(ctx, "ours", "tidemark linux")
	if err != nil {
		t.Fatal(err)
	}
	theirs, _, err := d.RegisterHost(ctx, "theirs", "Linux")
	if err != nil {
		t.Fatal(err)
	}
	declared := agentItems()
	if err := d.Declared(ctx, ours, declared); err != nil {
		t.Fatal(err)
	}
	s := snapshot(t, d)
	for host, least := range map[model.HostID]int{ours: 20, theirs: 14} {
		if n := len(s.TriggersOf(host)); n < least {
			t.Errorf("host %d has %d triggers, want at least %d", host, n, least)
		}
		if faults := s.Faults(host); len(faults) > 0 {
			t.Errorf("host %d: %+v", host, faults)
		}
	}
	for tr := range s.Triggers() {
		for _, text := range []string{tr.Expression, tr.Recovery} {
			if text == "" {
				continue
			}
			e, err := expr.Parse(text)
			if err != nil {
				t.Errorf("trigger %s: %s: %v", tr.Name, text, err)
				continue
			}
			if broken := e.Program.Broken(); broken != "" {
				t.Errorf("trigger %s: %s: %s", tr.Name, text, broken)
			}
			for _, ref := range e.Refs {
				_, configured := s.ItemOf(ref.Host, ref.Key)
				known := slices.ContainsFunc(declared, func(i model.Item) bool { return i.Key == ref.Key })
				if !configured && (!known || tr.HostID != ours) {
					t.Errorf("trigger %s names %s, which is neither configured nor declared", tr.Name, ref)
				}
			}
		}
		for _, text := range []string{tr.Name, tr.EventName, tr.OpData, tr.Expression} {
			if strings.Contains(text, "{#") || strings.Contains(text, "{$") {
				t.Errorf("trigger %s: a macro is left in %q", tr.Name, text)
			}
		}
	}
	if len(s.ActiveItems(ours)) != 1 || len(s.ActiveItems(theirs)) < 25 {
		t.Errorf("%d and %d active items, want 1 (the others are declared) and at least 25", len(s.ActiveItems(ours)), len(s.ActiveItems(theirs)))
	}
}

// TestFiles_triggersOfRequests counts what two watched servers with a shape each get.
func TestFiles_triggersOfRequests(t *testing.T) {
	ctx := context.Background()
	d := open(t)
	if _, err := d.ImportBuiltin(ctx, templates.Files()); err != nil {
		t.Fatal(err)
	}
	id, _, err := d.RegisterHost(ctx, "ours", "tidemark")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Declared(ctx, id, agentItems()); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, tr := range snapshot(t, d).TriggersOf(id) {
		if strings.HasPrefix(tr.Name, "MongoDB ") {
			got[tr.Name] = true
		}
	}
	for _, instance := range []string{"10.0.0.1:27017", "[::1]:27017"} {
		for _, name := range []string{
			"many requests fail", "requests take twice as long as yesterday", "new expensive request 00ff",
			"request 00ff takes twice as long as yesterday", "request 00ff is most of the load",
		} {
			full := "MongoDB " + instance + ": " + name
			if !got[full] {
				t.Errorf("no trigger %q", full)
			}
			delete(got, full)
		}
	}
	if len(got) > 0 {
		t.Errorf("triggers that nobody wanted: %v", got)
	}
}

func TestFiles_dependencies(t *testing.T) {
	ctx := context.Background()
	d := open(t)
	if _, err := d.ImportBuiltin(ctx, templates.Files()); err != nil {
		t.Fatal(err)
	}
	id, _, err := d.RegisterHost(ctx, "ours", "tidemark")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Declared(ctx, id, agentItems()); err != nil {
		t.Fatal(err)
	}
	s := snapshot(t, d)
	got := map[string][]string{}
	for _, tr := range s.TriggersOf(id) {
		for _, on := range tr.DependsOn {
			master, ok := s.Trigger(on)
			if !ok {
				t.Fatalf("trigger %s depends on %d, which is no trigger", tr.Name, on)
			}
			got[tr.Name] = append(got[tr.Name], master.Name)
		}
	}
	want := map[string][]string{
		"Clock is off":                {"Agent is silent"},
		"Values come from the future": {"Clock is off"},
		"Load is high":                {"CPU use is high"},
		"Swap is nearly used up":      {"Memory is nearly used up"},
		"All work waits for disks":    {"All work waits for memory"},
		"/: disk fills up":            {"/: disk space is critically low"},
		"/with, comma: disk fills up": {"/with, comma: disk space is critically low"},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("dependencies\n got %v\nwant %v", got, want)
	}
}

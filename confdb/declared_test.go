package confdb

import (
	"context"
	"errors"
	"slices"
	"testing"

	"tidemark/model"
)

const discovery = `"templates":[{"template":"T","name":"T",
 "items":[{"key":"up","name":"up","type":"TRAP"}],
 "discovery_rules":[{"key":"r","name":"r","type":"TRAP",
  "item_prototypes":[{"key":"fs[{#FSNAME},pused]","name":"x","type":"TRAP"},{"key":"fs[{#FSNAME},total]","name":"y","type":"TRAP"}],
  "trigger_prototypes":[
   {"name":"{#FSNAME} full","expression":"last(/T/fs[{#FSNAME},pused])>{$MAX:\"{#FSNAME}\"} and last(/T/fs[{#FSNAME},total])>0","tags":[{"tag":"fs","value":"{#FSNAME}"}],
    "dependencies":[{"name":"down","expression":"last(/T/up)=0"},{"name":"{#FSNAME} gone","expression":"nodata(/T/fs[{#FSNAME},pused],1m)=1"}]},
   {"name":"{#FSNAME} gone","expression":"nodata(/T/fs[{#FSNAME},pused],1m)=1"},
   {"name":"plain","expression":"last(/T/plain)>0"},
   {"name":"plain and configured","expression":"last(/T/plain)>0 and last(/T/up)>0"}]}]}],
 "hosts":[{"host":"h","templates":[{"name":"T"}]}],
 "triggers":[{"name":"down","expression":"last(/T/up)=0"}]`

func filesystem(name, quoted string) []model.Item {
	labels := model.Labels{{Name: "fsname", Value: name}, {Name: "fstype", Value: "ext4"}}
	return []model.Item{{Key: "fs[" + quoted + ",pused]", Labels: labels}, {Key: "fs[" + quoted + ",total]", Labels: labels}}
}

// expressions are a host's triggers, as "name: expression".
func expressions(t *testing.T, d *DB) []string {
	t.Helper()
	var list []string
	for _, tr := range hosts(t, d)["h"].Triggers {
		list = append(list, tr.Name+": "+tr.Expression)
	}
	slices.Sort(list)
	return list
}

func TestDeclared(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	importText(t, d, discovery)
	id := hosts(t, d)["h"].Host.ID
	down := "down: last(/h/up)=0"
	root := []string{
		`/ full: last(/h/fs[/,pused])>{$MAX:"/"} and last(/h/fs[/,total])>0`,
		"/ gone: nodata(/h/fs[/,pused],1m)=1",
	}
	odd := []string{
		`a,"b" full: last(/h/fs["a,\"b\"",pused])>{$MAX:"a,\"b\""} and last(/h/fs["a,\"b\"",total])>0`,
		`a,"b" gone: nodata(/h/fs["a,\"b\"",pused],1m)=1`,
	}
	plain := []string{"plain and configured: last(/h/plain)>0 and last(/h/up)>0", "plain: last(/h/plain)>0"}
	steps := []struct {
		name     string
		declared []model.Item
		want     []string
	}{
		{"nothing", nil, []string{down}},
		{"one filesystem", filesystem("/", "/"), append(slices.Clone(root), down)},
		{"again", filesystem("/", "/"), append(slices.Clone(root), down)},
		{"quoted", append(filesystem("/", "/"), filesystem(`a,"b"`, `"a,\"b\""`)...), slices.Concat(root, odd, []string{down})},
		{"one goes, plain comes", append(filesystem(`a,"b"`, `"a,\"b\""`), model.Item{Key: "plain"}), slices.Concat(odd, []string{down}, plain)},
		{"the second key is missing", filesystem("/", "/")[:1], []string{root[1], down}},
		{"labels that do not fit the key", []model.Item{{Key: "fs[/,pused]", Labels: model.Labels{{Name: "fsname", Value: "/x"}}}}, []string{down}},
		{"no labels", []model.Item{{Key: "fs[/,pused]"}}, []string{down}},
	}
	revision := uint64(0)
	for _, step := range steps {
		if err := d.Declared(ctx, id, step.declared); err != nil {
			t.Fatal(err)
		}
		slices.Sort(step.want)
		if got := expressions(t, d); !slices.Equal(got, step.want) {
			t.Errorf("%s:\n got %q\nwant %q", step.name, got, step.want)
		}
		now, _ := d.Revision(ctx)
		if step.name == "again" && now != revision {
			t.Errorf("declaring the same again raised the revision")
		}
		revision = now
	}
	if err := d.Declared(ctx, 999, nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("Declared for an unknown host: %v, want ErrNotFound", err)
	}
}

func TestDeclared_dependsOnSameInstance(t *testing.T) {
	d := open(t, t.TempDir())
	importText(t, d, discovery)
	id := hosts(t, d)["h"].Host.ID
	if err := d.Declared(context.Background(), id, append(filesystem("/", "/"), filesystem("/srv", "/srv")...)); err != nil {
		t.Fatal(err)
	}
	names := map[model.TriggerID]string{}
	list := hosts(t, d)["h"].Triggers
	for _, tr := range list {
		names[tr.ID] = tr.Name
	}
	for _, tr := range list {
		var on []string
		for _, id := range tr.DependsOn {
			on = append(on, names[id])
		}
		slices.Sort(on)
		want := map[string][]string{"/ full": {"/ gone", "down"}, "/srv full": {"/srv gone", "down"}}[tr.Name]
		if !slices.Equal(on, want) {
			t.Errorf("%s depends on %q, want %q", tr.Name, on, want)
		}
		if tr.Name == "/srv full" && tr.Tags[0].Value != "/srv" {
			t.Errorf("tags %v, want the macro expanded", tr.Tags)
		}
	}
}

func TestDeclared_survivesRestartAndTemplateChange(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	d := open(t, dir)
	importText(t, d, discovery)
	id := hosts(t, d)["h"].Host.ID
	if err := d.Declared(ctx, id, filesystem("/", "/")); err != nil {
		t.Fatal(err)
	}
	before := hosts(t, d)["h"].Triggers
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = open(t, dir)
	importText(t, d, `"templates":[`+owned("template", "T", "", "more")+`]`)
	if after := hosts(t, d)["h"].Triggers; len(after) != len(before) || after[0].ID != before[0].ID {
		t.Errorf("triggers before the first declaration: %v, before the restart %v", after, before)
	}
	if err := d.UnlinkTemplate(ctx, id, "T"); err != nil {
		t.Fatal(err)
	}
	if left := hosts(t, d)["h"].Triggers; len(left) != 0 {
		t.Errorf("triggers after unlinking: %v, want none", left)
	}
	if err := d.Declared(ctx, id, filesystem("/", "/")); err != nil {
		t.Fatal(err)
	}
	if err := d.LinkTemplate(ctx, id, "T"); err != nil {
		t.Fatal(err)
	}
	if now := hosts(t, d)["h"].Triggers; len(now) != 3 {
		t.Errorf("triggers after linking: %v, want 3 at once", now)
	}
}

package server

import (
	"context"
	"errors"
	"testing"

	"tidemark/catalog"
	"tidemark/confcache"
	"tidemark/internal/vfs"
	"tidemark/model"
)

// TestEventObjects_early names a trigger while the change that brings it is applied, as the log does for a value that the evaluator has seen by then.
func TestEventObjects_early(t *testing.T) {
	c, err := catalog.Open(t.Context(), vfs.OS{}, t.TempDir(), catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cache := confcache.New(hostSource{{
		Host:     model.Host{ID: 1, Host: "h", Enabled: true},
		Items:    []model.ItemConfig{{Item: model.Item{ID: 10, HostID: 1, Key: "k", Name: "Items name", Enabled: true, Delay: "10s"}}, {Item: model.Item{ID: 11, HostID: 1, Key: "part", Type: model.Dependent, Enabled: true}, MasterKey: "k"}},
		Triggers: []model.Trigger{{ID: 100, HostID: 1, Name: "Too much", Expression: "last(/h/k)>1", Severity: model.High, Enabled: true}},
	}}, confcache.Options{})
	definitions := newDefinitions(cache, c)
	objects := alertObjects{eventObjects{&namedItems{definitions}}, nil}
	found := func(when string) {
		t.Helper()
		if trigger, ok := objects.TriggerByID(100); !ok || trigger.Name != "Too much" || trigger.Severity != model.High {
			t.Errorf("%s: trigger %+v, %v", when, trigger, ok)
		}
		if item, ok := objects.ItemOf("h", "k"); !ok || item.Name != "Items name" {
			t.Errorf("%s: item %+v, %v", when, item, ok)
		}
		if item, ok := definitions.Item(10); !ok || item.Key != "k" || len(definitions.Dependents(10)) != 1 {
			t.Errorf("%s: item of a value %+v, %v, dependents %v", when, item, ok, definitions.Dependents(10))
		}
		if h, ok := objects.HostByName("h"); !ok || h.ID != 1 {
			t.Errorf("%s: host by name %+v, %v", when, h, ok)
		}
		if h, ok := objects.HostByID(1); !ok || h.ID != 1 {
			t.Errorf("%s: host %+v, %v", when, h, ok)
		}
	}
	refuse := errors.New("the store of another part is full")
	cache.Subscribe(func(context.Context, *confcache.Changes) error {
		found("while the change is applied")
		return refuse
	})
	if _, err := cache.Refresh(t.Context()); !errors.Is(err, refuse) {
		t.Fatalf("refresh: %v", err)
	}
	found("after another part refused the change")
	refuse = nil
	if _, err := cache.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	found("in force")
}

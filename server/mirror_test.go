package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"tidemark/confcache"
	"tidemark/model"
)

// others is the configuration of another process.
type others struct {
	revision uint64
	hosts    map[model.HostID]*model.HostConfig
	deleted  []model.HostID
}

func (o *others) Changes(context.Context, uint64) (uint64, []model.HostID, []model.HostID, error) {
	var ids []model.HostID
	for id := range o.hosts {
		ids = append(ids, id)
	}
	return o.revision, ids, o.deleted, nil
}

func (o *others) GlobalMacros(context.Context) ([]model.Macro, error) { return nil, nil }

func (o *others) Regexps(context.Context) ([]model.GlobalRegexp, error) { return nil, nil }

func (o *others) HostConfigs(_ context.Context, ids []model.HostID, f func(*model.HostConfig) error) error {
	for _, id := range ids {
		if err := f(o.hosts[id]); err != nil {
			return err
		}
	}
	return nil
}

// host makes a host with an item of each type, and one for discovery.
func (o *others) host(id model.HostID, name string, keys ...string) {
	h := &model.HostConfig{Host: model.Host{ID: id, Host: name, Name: name, Enabled: true}}
	for i, key := range append(keys, "rule") {
		t := model.Uint
		if key == "rule" {
			t = model.Binary
		}
		h.Items = append(h.Items, model.ItemConfig{Item: model.Item{
			ID: model.ItemID(uint64(id)*100 + uint64(i)), HostID: id, Type: model.PassiveAgent, Key: key, ValueType: t, Delay: "1s", Enabled: true,
		}})
	}
	o.hosts[id] = h
}

// A mirror shows hosts and values of another process, follows its changes, and lets nobody change anything.
func TestMirror(t *testing.T) {
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Options{Data: t.TempDir(), HTTP: web, Mirror: true, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := errors.Join(<-done, s.Close()); err != nil {
			t.Error(err)
		}
	}()
	r := &running{t: t, server: s, http: "http://" + web.Addr().String()}

	source := &others{revision: 1, hosts: map[model.HostID]*model.HostConfig{}}
	source.host(70_001, "a", "x", "y")
	source.host(70_002, "b", "z", "k[{$S}]", "l[{$S}]")
	source.hosts[70_002].Host.Macros = []model.Macro{{Name: "{$S}", Value: "s3cret", Secret: true}}
	cache := confcache.New(source, confcache.Options{})
	follow := func(want ...string) {
		t.Helper()
		if _, err := cache.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Follow(t.Context(), cache.Snapshot()); err != nil {
			t.Fatal(err)
		}
		var list struct{ Hosts []struct{ Host string } }
		r.get("/api/hosts", &list)
		var names []string
		for _, h := range list.Hosts {
			names = append(names, h.Host)
		}
		if fmt.Sprint(names) != fmt.Sprint(want) {
			t.Errorf("hosts %v, want %v", names, want)
		}
	}
	follow("a", "b")
	if item, ok := s.cache.Snapshot().ItemOf("b", "k[{$S}]"); !ok || !item.Enabled || item.Name != "k[{$S}]" && item.Name != "k[******]" {
		t.Errorf("a key with a secret macro is shown as %+v", item)
	}
	b := &model.Batch{ArrivedAt: time.Now().Add(-time.Minute).UnixNano()}
	for n := range uint64(3) {
		b.AppendUint(7_000_100, b.ArrivedAt+int64(n), n)
		b.AppendString(7_000_101, b.ArrivedAt+int64(n), model.Unsupported, "no")
		b.AppendString(7_000_102, b.ArrivedAt+int64(n), model.Binary, "[]")
		b.AppendUint(9, b.ArrivedAt, 1)
	}
	b.Done = append(b.Done, model.NewCompletion())
	s.Show(b)
	if b.Len() != 12 || len(b.Done) != 1 {
		t.Errorf("the batch was changed: %+v", b)
	}
	item, ok := s.cache.Snapshot().ItemOf("a", "x")
	if !ok {
		t.Fatal("there is no item x")
	}
	eventually(t, "the values are there", func() bool {
		var page struct {
			Values []struct{ Value struct{ V string } }
		}
		r.get(fmt.Sprintf("/api/values?item=%d&from=0&to=4000000000000&limit=10", item.ID), &page)
		return len(page.Values) == 3 && page.Values[2].Value.V == "2"
	})
	var me struct {
		Role  string
		First bool
	}
	if r.get("/api/me", &me); me.Role != "viewer" || me.First {
		t.Errorf("who looks is %+v", me)
	}
	body, _ := json.Marshal(map[string]string{"host": "a"})
	resp, err := http.Post(r.http+"/api/check-now", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a change is answered %s", resp.Status)
	}

	source.revision, source.deleted = 2, []model.HostID{70_001}
	delete(source.hosts, 70_001)
	source.host(70_002, "b", "z", "new")
	source.host(70_003, "c")
	follow("b", "c")
	if _, ok := s.cache.Snapshot().ItemOf("b", "new"); !ok {
		t.Error("a new item is not there")
	}
}

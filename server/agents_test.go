package server

import (
	"bytes"
	"context"
	"testing"

	"tidemark/collect"
	"tidemark/confdb"
	"tidemark/model"
)

func TestAgentTask(t *testing.T) {
	item := &model.Item{ID: 1, Key: "agent.ping"}
	f := func(want string, list ...model.Interface) {
		t.Helper()
		task, ok := agentTask(&model.Host{Interfaces: list}, item)
		if ok != (want != "") || task.Address != want {
			t.Errorf("%+v: %q, %t, want %q", list, task.Address, ok, want)
		}
	}
	f("")
	f("10.0.0.1:10050", model.Interface{Type: model.SNMPInterface, Main: true, Address: "10.0.0.9", Port: "161"},
		model.Interface{Type: model.AgentInterface, Address: "10.0.0.2", Port: "10050"},
		model.Interface{Type: model.AgentInterface, Main: true, Address: "10.0.0.1", Port: "10050"})
	f("[::1]:10051", model.Interface{Type: model.AgentInterface, Main: true, Address: "::1", Port: "10051"})
	f("", model.Interface{Type: model.AgentInterface, Main: true, Address: "10.0.0.1", Port: "{$PORT}"})
	f("", model.Interface{Type: model.AgentInterface, Main: true, Address: "10.0.0.1", Port: "0"})
	f("", model.Interface{Type: model.AgentInterface, Main: true, Port: "10050"})
}

func TestAgentAccess(t *testing.T) {
	ctx := context.Background()
	db, err := confdb.Open(ctx, t.TempDir(), confdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	host, _, err := db.RegisterHost(ctx, "h1", "")
	if err != nil {
		t.Fatal(err)
	}
	a, err := openAgentAccess(ctx, db, nil)
	if err != nil {
		t.Fatal(err)
	}
	plain := collect.Peer{Kind: model.Unencrypted}
	if !a.keys.Allows(host, plain) {
		t.Error("a host without settings is not open to unencrypted peers")
	}
	key := bytes.Repeat([]byte{1}, 16)
	if err := db.SetHostTLS(ctx, model.HostTLS{HostID: host, Connect: model.PSK, Accept: model.PSK, Identity: "one", Key: key}, 0); err != nil {
		t.Fatal(err)
	}
	if err := a.refresh(ctx); err != nil {
		t.Fatal(err)
	}
	if a.keys.Allows(host, plain) || len(a.trapperTLS().Keys.Keys("one")) != 1 || a.trapperTLS().Certificates != nil {
		t.Error("the settings are not in force")
	}
	if k := a.kinds(); len(k) != 1 || k[0].Name != "agent" {
		t.Errorf("kinds %+v", k)
	}
}

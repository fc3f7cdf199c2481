package server

import (
	"strings"
	"testing"

	"tidemark/expr"
	"tidemark/model"
)

// TestServer_ownHost registers an agent of ours and another from the server's machine: ours gets the triggers for the room of the store, and each of
// their items has a metric that it is read from.
func TestServer_ownHost(t *testing.T) {
	r := run(t, t.TempDir())
	for _, hello := range []string{
		`{"request":"active checks","host":"own","host_metadata":"tidemark","tidemark":1}`,
		`{"request":"active checks","host":"other","version":"6.0","session":"0123456789abcdef0123456789abcdef"}`,
	} {
		if answer := r.send(hello); !strings.Contains(answer, "success") {
			t.Fatalf("%s: %s", hello, answer)
		}
	}
	s := r.server.cache.Snapshot()
	internal := func(host string) (keys []string) {
		h, ok := s.Host(host)
		if !ok {
			t.Fatalf("host %s is not there", host)
		}
		if faults := s.Faults(h.ID); len(faults) > 0 {
			t.Errorf("%s: %+v", host, faults)
		}
		for _, i := range s.Items(h.ID) {
			if i.Type == model.Internal {
				keys = append(keys, i.Key)
			}
		}
		return keys
	}
	if keys := internal("other"); len(keys) > 0 {
		t.Errorf("a Zabbix agent's host has %v", keys)
	}
	var text strings.Builder
	r.server.metrics.WritePrometheus(&text)
	keys := internal("own")
	for _, key := range keys {
		if strings.HasPrefix(key, "zabbix[") {
			continue // TestInternalItems_healthTemplate asks for those
		}
		if _, params := expr.SplitKey(key); len(params) != 1 || !strings.Contains(text.String(), "\ntidemark_"+params[0]+" ") {
			t.Errorf("%s has no metric", key)
		}
	}
	names := map[string]bool{}
	for tr := range s.Triggers() {
		names[tr.Name] = true
	}
	if len(keys) < 18 || !names["The disk of the data folder is nearly full"] || !names["The disk of the data folder is filling up"] || !names["The disk of the data folder is full soon"] {
		t.Errorf("%d items, triggers %v", len(keys), names)
	}
}

func TestIsLoopback(t *testing.T) {
	f := func(peer string, want bool) {
		t.Helper()
		if got := isLoopback(peer); got != want {
			t.Errorf("%q: %t", peer, got)
		}
	}
	f("127.0.0.1", true)
	f("::1", true)
	f("::ffff:127.0.0.2", true)
	f("[::1]:10050", true)
	f("10.0.0.1", false)
	f("", false)
}

package agent

import (
	"strings"
	"testing"

	"tidemark/model"
)

// TestAskMongo_down asks a server that is not there: the agent goes on, and says so as a value.
func TestAskMongo_down(t *testing.T) {
	f := newFakeServer(t, "127.0.0.1:0")
	// Port 9 of loopback refuses connections.
	a := start(t, t.TempDir(), Options{Server: f.address(), Host: "db1", Mongo: Mongo{URI: "mongodb://alice:s3cr3t@127.0.0.1:9/", Interval: 1e9}})
	const up = "mongodb.self[127.0.0.1:9,up]"
	eventually(t, "the server is down", func() bool { return len(f.rows(up)) > 0 })
	a.stop()
	if rows := f.rows(up); rows[0].value != "0" {
		t.Errorf("up is %+v", rows[0])
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if d := f.declared[up]; d.Type != model.Uint || d.Labels.Get("section") != "mongodb" || d.Labels.Get("instance") != "127.0.0.1:9" {
		t.Errorf("declared %+v", d)
	}
	for _, g := range f.taken {
		if strings.Contains(g.key+g.value, "s3cr3t") {
			t.Errorf("the password is sent: %+v", g)
		}
	}
}

// TestOpen_badMongoURI refuses a wrong connection string without repeating it.
func TestOpen_badMongoURI(t *testing.T) {
	_, err := Open(t.Context(), t.TempDir(), Options{Server: "127.0.0.1:1", Mongo: Mongo{URI: "mongodb://alice:s3cr3t@a,b/"}})
	if err == nil || strings.Contains(err.Error(), "s3cr3t") || !strings.Contains(err.Error(), "several servers") {
		t.Errorf("got %v", err)
	}
}

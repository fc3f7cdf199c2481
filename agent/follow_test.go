package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFollower follows a file over both kinds of rotation.
func TestFollower(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var lines []string
	f := &follower{path: path, limit: 10, line: func(b []byte) {
		if b == nil {
			lines = append(lines, "too long")
			return
		}
		lines = append(lines, string(b))
	}}
	defer f.close()
	write := func(flags int, text string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|flags, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want ...string) {
		t.Helper()
		if err := f.poll(); err != nil {
			t.Fatal(err)
		}
		if err := f.poll(); err != nil { // After a turn, of the new file.
			t.Fatal(err)
		}
		if !slices.Equal(lines, want) {
			t.Errorf("lines %q, want %q", lines, want)
		}
		lines = nil
	}
	write(0, "before\nhalf")
	check()
	write(os.O_APPEND, " a line\none\ntwo\nthr")
	check("one", "two")
	write(os.O_APPEND, "ee\n"+strings.Repeat("x", 100_000))
	check("three", "too long")
	write(os.O_APPEND, "x\nlast\n")
	// Renamed, with a line that came after the last look; the old writer goes on for a moment.
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	check("last")
	write(0, "new 1\nnew 2\n")
	check("new 1", "new 2")
	// Cut, as copytruncate does.
	write(os.O_TRUNC, "cut\n")
	check("cut")
	write(os.O_APPEND, "12345678901\n1234567890\n")
	check("too long", "1234567890")
}

// TestFollower_later is a file that comes after the agent: it is read from its start.
func TestFollower_later(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	n := 0
	f := &follower{path: path, limit: 100, line: func([]byte) { n++ }}
	defer f.close()
	if err := f.poll(); err == nil {
		t.Error("a file that is not there is read")
	}
	if err := os.WriteFile(path, []byte("a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.poll(); err != nil || n != 2 {
		t.Errorf("%d lines, %v", n, err)
	}
}

// TestFollowMongo turns a growing log into sampled items.
func TestFollowMongo(t *testing.T) {
	f := newFakeServer(t, "127.0.0.1:0")
	path := filepath.Join(t.TempDir(), "mongod.log")
	a := start(t, t.TempDir(), Options{Server: f.address(), Host: "db1", Mongo: Mongo{Log: path, Interval: 1e9}})
	const told = "mongo.sampled[127.0.0.1:27017 (log),told]"
	eventually(t, "the agent looks for the log", func() bool { return len(f.rows(told)) > 0 })
	log, err := os.ReadFile("mongodb/testdata/mongod.log")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, log, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "four requests are told of", func() bool {
		rows := f.rows(told)
		return rows[len(rows)-1].value == "4"
	})
	eventually(t, "their shapes are sent", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		n := 0
		for _, d := range f.declared {
			if d.Labels.Get("sampled") == "log" && d.Labels.Get("shape") != "" && strings.HasSuffix(d.Key, ",requests]") {
				n++
			}
		}
		return n == 4
	})
	a.stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, g := range f.taken {
		if strings.Contains(g.key+g.value, "canary") {
			t.Errorf("a value is sent: %+v", g)
		}
	}
	for _, d := range f.declared {
		for _, l := range d.Labels {
			if strings.Contains(l.Value, "canary") {
				t.Errorf("a value is declared: %+v", d)
			}
		}
	}
}

package postgres

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// TestAdvise looks at real servers.
func TestAdvise(t *testing.T) {
	dsn := shared.database(t)
	open(t, dsn, testOptions(t, Plain, t.TempDir()))
	for _, dsn := range []string{dsn, shared.database(t), timescale.database(t)} {
		list, err := Advise(context.Background(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range list {
			if a.Subject == "" || a.Found == "" || a.Fine != (a.Change == "") || a.Fine != (a.Gives == "") {
				t.Errorf("%+v", a)
			}
		}
		// Every server begins with 128 MB of buffers and 1 GB of log.
		i := slices.IndexFunc(list, func(a Advice) bool { return strings.HasPrefix(a.Subject, "max_wal_size") })
		if i < 0 || list[i].Fine {
			t.Errorf("%+v, expected advice on checkpoints", list)
		}
	}
	if _, err := Advise(context.Background(), shared.DSN("missing")); err == nil {
		t.Error("no error for a database that is not there")
	}
}

// TestFacts_advise says what follows from facts.
func TestFacts_advise(t *testing.T) {
	good := facts{
		sharedBuffers: 4 << 30, memory: 16 << 30, maxWAL: 16 << 30, checkpointTimeout: 900, completion: 0.9, fullPageWrites: true, walCompression: "lz4", synchronous: "on",
		randomPageCost: 1.1, modes: map[Mode]int{Partitions: 3}, tablesBytes: 1 << 30,
	}
	for _, a := range good.advise() {
		if !a.Fine {
			t.Errorf("%+v, expected nothing to change", a)
		}
	}
	for _, test := range []struct {
		change func(*facts)
		want   string
	}{
		{func(f *facts) { f.sharedBuffers = 128 << 20 }, "shared_buffers = '4096MB'"},
		{func(f *facts) { f.sharedBuffers, f.memory = 128<<20, 0 }, "shared_buffers = '1024MB'"},
		{func(f *facts) { f.requested = 100 }, "max_wal_size = '16GB'"},
		{func(f *facts) { f.checkpointTimeout = 300 }, "checkpoint_timeout = '15min'"},
		{func(f *facts) { f.fileSystem = "zfs" }, "full_page_writes = off"},
		{func(f *facts) { f.fullPageWrites = false }, "full_page_writes = on"},
		{func(f *facts) { f.walCompression = "off" }, "wal_compression = 'lz4'"},
		{func(f *facts) { f.synchronous = "off" }, "synchronous_commit = on"},
		{func(f *facts) { f.randomPageCost = 4 }, "random_page_cost = 1.1"},
		{func(f *facts) { f.plainBytes = 9 << 30 }, "store migrate --to partitions"},
		{func(f *facts) { f.plainBytes, f.compression = 9<<30, true }, "store migrate --to timescale"},
		{func(f *facts) { f.modes = map[Mode]int{Timescale: 1} }, "community build"},
		{func(f *facts) { f.tablesBytes = 100 << 30 }, "tidemark migrate"},
	} {
		f := good
		test.change(&f)
		changes := ""
		for _, a := range f.advise() {
			changes += a.Change + "\n"
		}
		if !strings.Contains(changes, test.want) || strings.Count(strings.TrimSpace(changes), "\n") > 0 {
			t.Errorf("%q, expected only %q", changes, test.want)
		}
	}
}

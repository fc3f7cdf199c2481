package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/bench"
)

// TestStores sees to it that peers give back all that was written, so that none is measured doing nothing.
func TestStores(t *testing.T) {
	const metrics, instants, from, second = 7, 200, int64(1_767_225_600), int64(1e9)
	for name, open := range map[string]func(context.Context, *bench.Options) (bench.Store, error){
		prometheusName: openPrometheus, victoriaName: openVictoria,
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			db, err := open(ctx, &bench.Options{Dir: filepath.Join(t.TempDir(), "data"), CacheBytes: 64 << 20})
			if err != nil {
				t.Fatal(err)
			}
			var defs []storage.ItemDefinition
			for id := range model.ItemID(metrics) {
				defs = append(defs, storage.ItemDefinition{ID: id + 1, Type: model.Uint})
			}
			if err := db.Define(ctx, defs); err != nil {
				t.Fatal(err)
			}
			b := model.NewBatch()
			for i := range int64(instants) {
				b.Reset()
				for id := range model.ItemID(metrics) {
					b.Append(id+1, (from+i)*second, model.Uint, uint64(i*i))
				}
				if err := db.Append(ctx, b); err != nil {
					t.Fatal(err)
				}
			}
			if err := db.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			n, err := db.NewReader()(ctx, 3, model.TimeRange{From: (from + 50) * second, To: (from + 150) * second})
			if err != nil || n != 100 {
				t.Errorf("%d values, %v, expected 100", n, err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if samples, bytes, err := db.AtRest(); err != nil || samples != metrics*instants || bytes == 0 {
				t.Errorf("%d values in %d bytes, %v", samples, bytes, err)
			}
		})
	}
}

func TestParsePhase(t *testing.T) {
	name, f, ok := parsePhase("PHASE mixed seconds=5.24 writes=7967322 reads=28080 queries=23 cores=0.733 rss=158973952 disk=300 samples=100\n")
	if !ok || name != "mixed" || f.Writes != 7967322 || f.Reads != 28080 || f.Cores != 0.733 || f.BytesPerSample != 3 {
		t.Errorf("%q %+v %v", name, f, ok)
	}
	for _, line := range []string{"", "written data points", "PHASE mixed", "PHASE mixed writes=x"} {
		if _, _, ok := parsePhase(line); ok {
			t.Errorf("%q is a phase", line)
		}
	}
}

func TestTargets(t *testing.T) {
	p := plan{engines: engineNames, all: map[cell][]figures{}}
	p.add("gauge", tidemark, columns[0].title, figures{Writes: 44e6, Cores: 2})
	p.add("gauge", netdataName, columns[0].title, figures{Writes: 6e6, Cores: 1})
	got := map[string]bool{}
	for _, target := range p.targets("gauge") {
		got[target.goal] = target.met
	}
	if len(got) != 3 || !got["writes: 22 M/s per core"] || !got["writes: 43 M/s in all"] || got["writes: 4 × netdata"] {
		t.Errorf("targets: %v", got)
	}
}

func TestRun_refuses(t *testing.T) {
	for _, args := range []string{"-values gauges", "-engines sqlite", "-runs 0", "measure -engine x -values gauge -writers 1 -duration 1s"} {
		if err := run(context.Background(), strings.Fields(args)); err == nil {
			t.Errorf("%s: no error", args)
		}
	}
}

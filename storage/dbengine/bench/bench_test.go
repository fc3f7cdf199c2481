package bench

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestRun(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace.txt")
	if err := os.WriteFile(trace, []byte("1796022383.5 1 2.5 nan 7\n1796022384.5 2 2.25 1 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, kind := range append([]string{"trace"}, Kinds...) {
		o := Options{Metrics: 300, Writers: 2, Readers: 1, CacheBytes: 64 << 20, DiskSpaceBytes: 512 << 20, Values: kind}
		if kind == "trace" {
			o.Trace = trace
		}
		r := runUntilRead(t, o)
		if written := r.WritesPerSecond * r.Seconds; r.Samples < 300 || float64(r.Samples) < written-0.5 || r.BytesPerSample <= 0 {
			t.Errorf("%s: %d samples of %g bytes stored, %g written", kind, r.Samples, r.BytesPerSample, written)
		}
		if r.Queries == 0 || r.ReadsPerSecond == 0 || r.CPUCores <= 0 {
			t.Errorf("%s: %+v", kind, r)
		}
	}
}

// runUntilRead runs longer when a busy machine let the readers come to nothing.
func runUntilRead(t *testing.T, o Options) (r *Result) {
	t.Helper()
	for _, o.Duration = range []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second} {
		o.Dir = filepath.Join(t.TempDir(), "engine")
		var err error
		if r, err = Run(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		if r.ReadsPerSecond > 0 {
			break
		}
	}
	return r
}

func TestRun_refuses(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := Options{Metrics: 1, Writers: 1, CacheBytes: 64 << 20, Duration: time.Second, Values: "gauge", Dir: filepath.Join(full, "engine")}
	for name, change := range map[string]func(*Options){
		"no metrics": func(o *Options) { o.Metrics = 0 },
		"nobody":     func(o *Options) { o.Writers = 0 },
		"kind":       func(o *Options) { o.Values = "gauges" },
		"folder":     func(o *Options) { o.Dir = full },
		"trace":      func(o *Options) { o.Trace = filepath.Join(full, "none") },
		"empty":      func(o *Options) { o.Trace = filepath.Join(full, "x") },
	} {
		o := good
		change(&o)
		if r, err := Run(context.Background(), o); err == nil {
			t.Errorf("%s: no error, got %+v", name, r)
		}
	}
}

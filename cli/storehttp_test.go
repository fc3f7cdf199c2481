package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/server"
	"tidemark/storage"
	"tidemark/storage/dbengine"
)

// execute runs a command and returns what it prints.
func execute(t *testing.T, c *cobra.Command, args ...string) string {
	t.Helper()
	var out, said bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&said)
	c.SetArgs(args)
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v: %v; it said %s", args, err, said.String())
	}
	return out.String()
}

// serve runs a server on a data folder and returns its address.
func serve(t *testing.T, data string) (address string, stop func()) {
	t.Helper()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	o := server.Options{Data: data, HTTP: listen(), Trapper: listen(), Version: "test"}
	s, err := server.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := errors.Join(<-done, s.Close()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return o.HTTP.Addr().String(), stop
}

// values counts what an engine's folder holds of the items of fillStore, and adds its values up.
func values(t *testing.T, dir string) (count int, sum uint64) {
	t.Helper()
	db, err := dbengine.Open(t.Context(), vfs.OS{}, dir, dbengine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var items []model.ItemID
	for item := range storeItems {
		items = append(items, model.ItemID(item+1))
	}
	q := storage.Query{Items: items, Range: model.TimeRange{From: math.MinInt64, To: math.MaxInt64}}
	err = db.Read(t.Context(), q, func(c *model.Columns) error {
		for _, bits := range c.Bits {
			count, sum = count+1, sum+bits
		}
		return nil
	})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return count, sum
}

// elsewhere is a way to a server that does not say where its files are, as from another machine.
func elsewhere(t *testing.T, address string) string {
	t.Helper()
	target, err := url.Parse("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(target)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/storage/folder" {
			http.NotFound(w, r)
			return
		}
		r.Host, r.Header["X-Forwarded-For"] = address, nil // it is let in as from this machine
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// TestStore_http re-compresses the store of a running server and downloads a snapshot of it, which restores to the same values.
func TestStore_http(t *testing.T) {
	data, db := fillStore(t)
	if err := errors.Join(db.WaitSummedUp(t.Context()), db.Close()); err != nil {
		t.Fatal(err)
	}
	engine := filepath.Join(data, "engine")
	before, err := dbengine.ClosedPairs(vfs.OS{}, engine)
	if err != nil || len(before) != 1 {
		t.Fatalf("%+v, %v", before, err)
	}
	count, sum := values(t, engine)
	address, stop := serve(t, data)
	var p dbengine.RecompressProgress
	text := execute(t, storeRecompressCommand(), "--http", address, "--codec", "zstd:3", "--older-than", "0", "--merge=1GiB", "--now", "--json")
	if err := json.Unmarshal([]byte(text), &p); err != nil || p.WrittenPairs != 1 || p.AfterBytes >= p.BeforeBytes || p.SkippedPairs != 0 {
		t.Fatalf("it says %s, %v", text, err)
	}
	linked, copied := filepath.Join(filepath.Dir(data), "linked"), filepath.Join(t.TempDir(), "copy")
	var near, far snapshotReport
	for _, take := range []struct {
		from, to string
		report   *snapshotReport
	}{{address, linked, &near}, {elsewhere(t, address), copied, &far}} {
		text := execute(t, storeSnapshotCommand(), "--http", take.from, take.to, "--json")
		if err := json.Unmarshal([]byte(text), take.report); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	if near.Copied || !far.Copied || near.Files != far.Files {
		t.Errorf("on this machine %+v, from elsewhere %+v", near, far)
	}
	stop()
	after, err := dbengine.ClosedPairs(vfs.OS{}, engine)
	if err != nil || len(after) != 1 || after[0].Name == before[0].Name || after[0].Bytes >= before[0].Bytes {
		t.Errorf("%+v became %+v, %v", before, after, err)
	}
	back := t.TempDir()
	for _, from := range []string{linked, copied} {
		execute(t, storeVerifyCommand(), from)
		execute(t, storeRestoreCommand(), from, filepath.Join(back, filepath.Base(from)))
	}
	for _, dir := range []string{engine, filepath.Join(back, "linked/engine"), filepath.Join(back, "copy/engine")} {
		if n, s := values(t, dir); n != count || s != sum || n != 2000*storeItems {
			t.Errorf("%s holds %d values that make %d, want %d that make %d", dir, n, s, count, sum)
		}
	}
}

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/query/querylog"
	"tidemark/server"
	"tidemark/storage/dbengine"
	"tidemark/storage/dbengine/trial"
)

// storeItems is how many items fillStore writes, 2,000 values each.
const storeItems = 20

// fillStore makes a data folder with one closed pair, and leaves its engine open.
func fillStore(t *testing.T) (string, *dbengine.DB) {
	t.Helper()
	data := t.TempDir()
	ctx := context.Background()
	db, err := dbengine.Open(ctx, vfs.OS{}, filepath.Join(data, "engine"), dbengine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	b := model.NewBatch()
	defer b.Free()
	for item := range storeItems {
		b.Reset()
		for i := range int64(2000) {
			b.Append(model.ItemID(item+1), 1_790_000_000_000_000_000+i*1_000_000_000, model.Uint, uint64(i*i%1009+int64(item)))
		}
		if _, err := db.Append(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.ClosePair(ctx); err != nil {
		t.Fatal(err)
	}
	return data, db
}

func TestStoreTrial(t *testing.T) {
	data, _ := fillStore(t)
	log := `{"at":1,"from":0,"to":600000000000,"items":[[7,7]]}` + "\n"
	if err := os.WriteFile(filepath.Join(data, querylog.FileName), []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		c := storeTrialCommand()
		c.RunE = nil // it would lower the priority of all tests
		if err := c.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		c.SetOut(&out)
		c.SetErr(io.Discard) // progress, on a slow machine
		c.SetContext(context.Background())
		get := func(name string) string { return c.Flags().Lookup(name).Value.String() }
		f := &trialFlags{
			codecs: get("codecs"), extents: get("extent"), queries: get("queries"), sample: get("sample"), scratch: get("scratch"), space: get("disk-space"),
			rounds: 5, asJSON: get("json") == "true",
		}
		err := runTrial(c, f, []string{data})
		return out.String(), err
	}
	text, err := run("--codecs", "none,zstd:3", "--json", "--disk-space", "1GiB")
	var report trial.Report
	if err != nil || json.Unmarshal([]byte(text), &report) != nil || len(report.Candidates) != 2 {
		t.Fatalf("%s, %v", text, err)
	}
	if report.QueriesMade || report.Queries != 1 || report.QuotaBytes != 1<<30 || report.Candidates[1].Codec != "zstd:3" || report.Candidates[1].Ratio <= 1 {
		t.Errorf("the report is %+v", report)
	}
	text, err = run("--codecs", "none", "--extent", "16KiB")
	for _, want := range []string{"5 rounds over 1 of 1 closed file pairs", "1 logged queries", "as it is", "16KiB", "\n\n"} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("the text has no %q: %s, %v", want, text, err)
		}
	}
	for want, flag := range map[string][2]string{
		"--codecs": {"--codecs", "gzip"}, "expected 4KiB to 4MiB": {"--extent", "1KiB"}, "--sample: found": {"--sample", "5"},
		"--disk-space: found": {"--disk-space", "x"}, "no such file": {"--queries", filepath.Join(data, "none")},
	} {
		if _, err := run(flag[:]...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", flag, err, want)
		}
	}
	if last, err := trial.ReadLast(data); err != nil || last == nil || len(last.Candidates) != 1 || last.At == 0 {
		t.Errorf("kept of the last trial is %+v, %v", last, err)
	}
	if _, err := os.Stat(filepath.Join(data, "tidemark-trial")); !os.IsNotExist(err) {
		t.Errorf("the scratch folder: %v", err)
	}
}

// TestStoreTrial_http: the server names its folder, which must be the one that is seen under that name here.
func TestStoreTrial_http(t *testing.T) {
	data, _ := fillStore(t)
	engine := filepath.Join(data, "engine")
	folder, err := server.FindStorageFolder(engine)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/api/storage/folder" {
			t.Errorf("asked for %s %s", r.Method, r.URL.Path)
		}
		_ = json.NewEncoder(w).Encode(folder)
	}))
	defer web.Close()
	c := storeTrialCommand()
	c.SetContext(context.Background())
	f := &trialFlags{client: serverClient{address: strings.TrimPrefix(web.URL, "http://")}}
	if got, err := f.folder(c, nil); err != nil || got != engine {
		t.Errorf("found %s, %v", got, err)
	}
	if _, err := f.folder(c, []string{data}); err == nil {
		t.Error("a folder and a server are taken together")
	}
	folder.Inode++
	if _, err := f.folder(c, nil); err == nil || !strings.Contains(err.Error(), "not on this machine") {
		t.Errorf("another folder of that name: %v", err)
	}
	folder.Folder = "/no/such/folder"
	if _, err := f.folder(c, nil); err == nil || !strings.Contains(err.Error(), "not on this machine") {
		t.Errorf("a folder of another machine: %v", err)
	}
	f.client.address = ""
	if _, err := f.folder(c, nil); err == nil {
		t.Error("neither a folder nor a server is enough")
	}
}

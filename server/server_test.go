package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/histcache"
	"tidemark/model"
)

// running is a server that a test runs.
type running struct {
	t             *testing.T
	http, trapper string
	server        *Server
	stop          func()
}

func run(t *testing.T, dir string) *running {
	t.Helper()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	o := Options{Data: dir, HTTP: listen(), Trapper: listen(), Autoregistration: true, Version: "test", QueryLogBytes: 1 << 20}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	r := &running{t: t, server: s, http: "http://" + o.HTTP.Addr().String(), trapper: o.Trapper.Addr().String()}
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := errors.Join(<-done, s.Close()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(r.stop)
	return r
}

// get reads JSON from the API.
func (r *running) get(path string, into any) {
	r.t.Helper()
	answer, err := http.Get(r.http + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil || answer.StatusCode != http.StatusOK {
		r.t.Fatalf("%s: %s %v %s", path, answer.Status, err, body)
	}
}

// send sends one request in the agent protocol and returns the answer.
func (r *running) send(body string) string {
	r.t.Helper()
	c, err := net.Dial("tcp", r.trapper)
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	frame := append([]byte("ZBXD\x01"), binary.LittleEndian.AppendUint64(nil, uint64(len(body)))...)
	if _, err := c.Write(append(frame, body...)); err != nil {
		r.t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil || len(answer) < 13 {
		r.t.Fatalf("answer %q: %v", answer, err)
	}
	return string(answer[13:])
}

// sender sends one value of the test's item.
func (r *running) sender(value string, clock int64) {
	r.t.Helper()
	answer := r.send(fmt.Sprintf(`{"request":"sender data","data":[{"host":"web-1","key":"temperature","value":"%s","clock":%d,"ns":7}]}`, value, clock))
	if !strings.Contains(answer, "processed: 1; failed: 0") {
		r.t.Fatalf("the sender is answered %s", answer)
	}
}

const export = `{"zabbix_export":{"version":"6.0","groups":[{"uuid":"0123456789ab4def8123456789abcdef","name":"Tests"}],"hosts":[{"host":"web-1","name":"Web",
"groups":[{"name":"Tests"}],"items":[{"name":"Temperature","type":"TRAP","key":"temperature","delay":"0","value_type":"FLOAT","triggers":[
{"expression":"last(/web-1/temperature)>10","name":"Too warm on {HOST.NAME}","priority":"HIGH","opdata":"{ITEM.VALUE}"}]}]}]}}`

func (r *running) importExport() {
	r.t.Helper()
	answer, err := http.Post(r.http+"/api/import", "application/json", strings.NewReader(export))
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		r.t.Fatalf("import: %s %s", answer.Status, body)
	}
}

type problemList struct {
	Problems []struct {
		Name, Severity string
		RecoveredAt    *int64 `json:"recovered_at"`
	}
}

// problem waits until there is one problem in the wanted state; evaluation follows the answer within moments.
func (r *running) problem(open bool) {
	r.t.Helper()
	var list problemList
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		r.get("/api/problems?open=false", &list)
		if len(list.Problems) == 1 && (list.Problems[0].RecoveredAt == nil) == open {
			if p := list.Problems[0]; p.Name != "Too warm on Web" || p.Severity != "high" {
				r.t.Errorf("problem %+v", p)
			}
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	r.t.Fatalf("problems %+v, want one with open %v", list.Problems, open)
}

// query returns the value of an instant query.
func (r *running) query(q string) string {
	r.t.Helper()
	var answer struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	r.get("/api/v1/query?query="+url.QueryEscape(q), &answer)
	if len(answer.Data.Result) != 1 {
		return fmt.Sprintf("%d results", len(answer.Data.Result))
	}
	return fmt.Sprint(answer.Data.Result[0].Value[1])
}

// TestServer takes one value along the whole way, and through a restart.
func TestServer(t *testing.T) {
	dir := t.TempDir()
	now := time.Now().Unix()
	r := run(t, dir)
	r.importExport()
	r.importExport()
	r.sender("42.5", now-2)
	r.problem(true)
	if got := r.query(`temperature{host="web-1"}`); got != "42.5" {
		t.Errorf("temperature is %s, want 42.5", got)
	}
	r.stop()

	r = run(t, dir)
	r.problem(true)
	if got := r.query("temperature"); got != "42.5" {
		t.Errorf("after a restart temperature is %s, want 42.5", got)
	}
	r.sender("42.5", now-2)
	r.sender("3", now-1)
	r.problem(false)
	if got := r.query("count_over_time(temperature[1m])"); got != "2" {
		t.Errorf("%s values are stored, want 2: a value sent again adds nothing", got)
	}
	if got := r.send(`{"request":"sender data","data":[{"host":"web-1","key":"nosuch","value":"1"},{"host":"nosuch","key":"k","value":"1"}]}`); !strings.Contains(got, "processed: 0; failed: 2; total: 2") {
		t.Errorf("unknown items are answered %s", got)
	}
}

// TestServer_allowedHosts refuses a sender that the item does not allow.
func TestServer_allowedHosts(t *testing.T) {
	r := run(t, t.TempDir())
	allowed := strings.Replace(export, `"delay":"0"`, `"delay":"0","allowed_hosts":"192.0.2.7"`, 1)
	answer, err := http.Post(r.http+"/api/import", "application/json", strings.NewReader(allowed))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if got := r.send(`{"request":"sender data","data":[{"host":"web-1","key":"temperature","value":"1"}]}`); !strings.Contains(got, "processed: 0; failed: 1") {
		t.Errorf("a sender from elsewhere is answered %s", got)
	}
	r.importExport()
	if got := r.send(`{"request":"sender data","data":[{"host":"web-1","key":"temperature","value":"1"}]}`); !strings.Contains(got, "processed: 1; failed: 0") {
		t.Errorf("after the list is gone the sender is answered %s", got)
	}
}

// TestServer_registers lets an agent introduce itself.
func TestServer_registers(t *testing.T) {
	r := run(t, t.TempDir())
	answer := r.send(`{"request":"active checks","host":"new-1","version":"6.0","session":"0123456789abcdef0123456789abcdef"}`)
	if !strings.Contains(answer, `"success"`) || !strings.Contains(answer, `"key"`) {
		t.Errorf("a new agent is answered %s, want its list", answer)
	}
	var hosts struct {
		Hosts []struct {
			Host      string
			Templates []string
		}
	}
	r.get("/api/hosts", &hosts)
	if len(hosts.Hosts) != 1 || hosts.Hosts[0].Host != "new-1" || len(hosts.Hosts[0].Templates) != 1 {
		t.Errorf("hosts %+v", hosts.Hosts)
	}
}

func TestOpen_inUse(t *testing.T) {
	dir := t.TempDir()
	run(t, dir)
	_, err := Open(t.Context(), Options{Data: dir})
	if !errors.Is(err, ErrInUse) {
		t.Errorf("a second server on the folder: %v, want ErrInUse", err)
	}
	if _, err := ImportOffline(t.Context(), dir, nil, nil); !errors.Is(err, ErrInUse) {
		t.Errorf("an import into a folder in use: %v, want ErrInUse", err)
	}
}

// TestGuard checks that a foreign page and a foreign name lead nowhere.
func TestGuard(t *testing.T) {
	r := run(t, t.TempDir())
	f := func(name string, change func(*http.Request), want int) {
		t.Helper()
		request, err := http.NewRequest(http.MethodGet, r.http+"/api/hosts", nil)
		if err != nil {
			t.Fatal(err)
		}
		change(request)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: %s, want %d", name, answer.Status, want)
		}
	}
	f("plain", func(*http.Request) {}, http.StatusOK)
	f("foreign host", func(q *http.Request) { q.Host = "evil.example" }, http.StatusForbidden)
	f("foreign origin", func(q *http.Request) { q.Header.Set("Origin", "http://evil.example") }, http.StatusForbidden)
	f("own origin", func(q *http.Request) { q.Header.Set("Origin", r.http) }, http.StatusOK)
}

func TestClassOf(t *testing.T) {
	classes := retentionClasses()
	for _, c := range []struct{ history, trends time.Duration }{
		{0, 0}, {day, 31 * day}, {2 * day, day}, {31 * day, 365 * day}, {31 * day, 366 * day}, {20 * 365 * day, 0},
	} {
		got := classes[classOf(classes, c.history, c.trends)]
		if got.History != 0 && got.History < c.history || got.Trends != 0 && got.Trends < c.trends {
			t.Errorf("history %v, trends %v get class %v, which keeps less", c.history, c.trends, got)
		}
	}
}

// TestTokenFile lets only those in who have the token of the token file; loopback alone is not enough then.
func TestTokenFile(t *testing.T) {
	s := openForTest(t)
	s.o.Token = "0123456789abcdef"
	var err error
	s.metrics = metrics.NewSet()
	if err := s.openAccess(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	h, err := s.handler()
	if err != nil {
		t.Fatal(err)
	}
	f := func(path string, change func(*http.Request), want int) {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.RemoteAddr = "127.0.0.1:4711"
		change(r)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	f("/-/ready", func(*http.Request) {}, http.StatusOK)
	f("/api/me", func(*http.Request) {}, http.StatusUnauthorized)
	f("/api/hosts", func(r *http.Request) { r.Header.Set("Authorization", "Bearer 0123456789abcdef") }, http.StatusOK)
	f("/api/hosts", func(r *http.Request) { r.Header.Set("Authorization", "Bearer wrong") }, http.StatusUnauthorized)
	f("/api/hosts", func(r *http.Request) { r.SetBasicAuth("anybody", "0123456789abcdef") }, http.StatusOK)
	f("/api/hosts", func(r *http.Request) { r.SetBasicAuth("anybody", "") }, http.StatusUnauthorized)
}

// TestMe_trapper: the commands that the page shows name the address on which the server listens.
func TestMe_trapper(t *testing.T) {
	r := run(t, t.TempDir())
	var me struct {
		Trapper string `json:"trapper"`
	}
	if r.get("/api/me", &me); me.Trapper != r.trapper {
		t.Errorf("the trapper is said to listen on %q, want %q", me.Trapper, r.trapper)
	}
}

// TestOpen_lostCatalog removes the catalog and the configuration: ids that the store knows must not be given a second time.
func TestOpen_lostCatalog(t *testing.T) {
	dir := t.TempDir()
	r := run(t, dir)
	r.importExport()
	r.sender("42.5", time.Now().Unix()-2)
	r.stop()
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "catalog")), os.Remove(filepath.Join(dir, "config.db"))); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Options{Data: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id, err := s.catalog.NextItemID()
	if stored := s.maxItemID(); err != nil || id <= stored || stored == 0 {
		t.Errorf("id %d, %v; the store has values of %d", id, err, stored)
	}
}

// TestOpen_damagedConfiguration starts with a damaged database, and then takes hosts again.
func TestOpen_damagedConfiguration(t *testing.T) {
	dir := t.TempDir()
	r := run(t, dir)
	r.importExport()
	r.stop()
	if err := os.WriteFile(filepath.Join(dir, "config.db"), bytes.Repeat([]byte{0xa5}, 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	r = run(t, dir)
	r.importExport()
	r.sender("42.5", time.Now().Unix()-2)
	if kept, _ := filepath.Glob(filepath.Join(dir, "config.db.damaged-*")); len(kept) != 1 {
		t.Errorf("damaged files kept: %v", kept)
	}
}

// TestRefuseWaiting ends the requests of values that nobody takes any more, so that a stop does not wait for them.
func TestRefuseWaiting(t *testing.T) {
	s := &Server{histcache: histcache.New(histcache.Options{})}
	done := model.NewCompletion()
	b := model.NewBatch()
	b.AppendUint(1, 1, 1)
	b.Done = append(b.Done, done)
	if err := s.histcache.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	s.refuseWaiting()
	if <-done.Done(); !errors.Is(done.Err(), errStopping) {
		t.Errorf("the request ended with %v, want %v", done.Err(), errStopping)
	}
	if err := s.histcache.Put(t.Context(), model.NewBatch()); err == nil {
		t.Error("values are still accepted")
	}
}

package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/api"
	"tidemark/api/zabbix"
	"tidemark/catalog"
	"tidemark/collect/poller"
	"tidemark/collect/trapper"
	"tidemark/collect/zbxagent"
	"tidemark/collectors"
	"tidemark/confcache"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/preproc"
	"tidemark/valuecache"
)

// TestPollRoutes asks for items of an agent that is not there.
func TestPollRoutes(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(ln.Addr().String())
	ln.Close() // Nobody listens there any more.
	item := func(id model.ItemID, key string, kind model.ItemType) model.ItemConfig {
		return model.ItemConfig{Item: model.Item{ID: id, HostID: 1, Key: key, Type: kind, Delay: "1h", Enabled: true}}
	}
	list := []model.ItemConfig{item(1, "agent.ping", model.PassiveAgent), item(2, "part", model.Dependent), item(3, "sent", model.Trapper)}
	list[1].MasterKey = "agent.ping"
	remote := []model.ItemConfig{
		item(4, "agent.ping", model.PassiveAgent), item(5, "sent", model.Trapper), item(6, "of.ping", model.Dependent), item(7, "web.test[a]", model.WebTest),
		item(8, "web.test.fail[a]", model.Dependent),
	}
	remote[2].MasterKey, remote[4].MasterKey = "agent.ping", "web.test[a]"
	for i := range remote {
		remote[i].HostID = 2
	}
	c, err := catalog.Open(t.Context(), vfs.OS{}, t.TempDir(), catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cache := confcache.New(hostSource{{Host: model.Host{
		ID: 1, Host: "h", Enabled: true, Interfaces: []model.Interface{{Type: model.AgentInterface, Main: true, Address: host, Port: port}},
	}, Items: list}, {Host: model.Host{ID: 2, Host: "far", Enabled: true, Proxy: 7}, Items: remote}}, confcache.Options{})
	if _, err := cache.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	names := &namedItems{definitions: newDefinitions(cache, c)}
	values := valuecache.New(valuecache.Options{History: noHistory{}})
	sink := &keeping{values: values, newest: map[model.ItemID]string{}, also: func(*model.Batch) {}}
	proxied := func(*model.Host, int) (trapper.ProxyInterface, bool) {
		return trapper.ProxyInterface{Available: poller.Unavailable, Error: "no route"}, true
	}
	var asked []model.ItemID
	var silent error
	p := newPolling(pollingOptions{
		sink: preproc.New(preproc.Options{Items: names.definitions, Sink: sink}), names: names, values: values, version: "1", started: time.Now(),
		kinds: []poller.Kind{zbxagent.New(zbxagent.Options{}).Kind()}, tasks: collectors.Task, proxied: proxied, proxyName: func(id model.ProxyID) string { return fmt.Sprint("north-", id) },
		askProxy: func(_ model.ProxyID, id model.ItemID) error { asked = append(asked, id); return silent }, metrics: metrics.NewSet(), logger: slog.New(slog.DiscardHandler),
	})
	handler := api.NewHandler(p.routes(), http.NotFoundHandler(), api.Options{Guard: api.Guard{AnyHost: func() bool { return true }}})
	ask := func(method, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	f := func(method, path, body string, status int, want string) {
		t.Helper()
		if w := ask(method, path, body); w.Code != status || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s %s %s: %d %s, want %d %s", method, path, body, w.Code, w.Body, status, want)
		}
	}
	f("GET", "/api/hosts/1/interfaces", "", 200, `"state":"unknown"`)
	far := &model.Host{ID: 2, Proxy: 7, Interfaces: []model.Interface{{Type: model.AgentInterface, Address: host, Port: port}}}
	if got := (zabbixObjects{Server: &Server{polling: p}}).InterfaceStates(far); len(got) != 1 || got[0] != (zabbix.InterfaceState{Available: 2, Error: "no route"}) {
		t.Errorf("the interface of a host behind a proxy that does not reach it: %+v", got)
	}
	f("GET", "/api/hosts/9/interfaces", "", 404, "no host")
	f("GET", "/api/queue", "", 200, `"kind":"agent"`)
	f("POST", "/api/check-now", `{"host":"nobody"}`, 404, "no host has the name")
	f("POST", "/api/check-now", `{"host":"h","key":"nothing"}`, 404, "has no item")
	f("POST", "/api/check-now", `{"host":"h","key":"sent"}`, 400, "is not asked for by the server")
	f("POST", "/api/check-now", `{"host":"far","key":"agent.ping"}`, 200, `{"items":1,"proxy":"north-7"}`)
	f("POST", "/api/check-now", `{"host":"far","key":"sent"}`, 400, "is not asked for by the server or by proxy north-7")
	f("POST", "/api/check-now", `{"host":"far","key":"web.test.fail[a]"}`, 400, "is not asked for by the server or by proxy north-7")
	f("POST", "/api/check-now", `{"host":"far"}`, 200, `{"items":1,"proxy":"north-7","not_asked":2,"not_asked_keys":["sent","web.test[a]"]}`)
	silent = errors.New("nothing is heard of it")
	f("POST", "/api/check-now", `{"host":"far"}`, 400, "nothing is heard of it")
	if want := []model.ItemID{4, 4, 4}; !slices.Equal(asked, want) {
		t.Errorf("the proxy is asked for %v, want %v", asked, want)
	}
	f("POST", "/api/check-now", `{"what":1}`, 400, "what")
	done := make(chan error, 1)
	go func() { done <- p.Run(t.Context()) }()
	f("POST", "/api/check-now", `{"host":"h","key":"part"}`, 200, `"items":1`)
	f("POST", "/api/check-now", `{"host":"h"}`, 200, `{"items":1,"not_asked":1,"not_asked_keys":["sent"]}`)
	deadline := time.After(time.Minute)
	for !strings.Contains(ask("GET", "/api/hosts/1/interfaces", "").Body.String(), "connection refused") {
		select {
		case err := <-done:
			t.Fatal(err)
		case <-deadline:
			t.Fatalf("the failure does not show: %s", ask("GET", "/api/hosts/1/interfaces", "").Body)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

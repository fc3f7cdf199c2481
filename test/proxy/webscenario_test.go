package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
)

// shop is a site of two pages. The second has a status of its own for each run, so that values say which runs they are of.
type shop struct {
	*httptest.Server
	runs atomic.Int64
}

const (
	firstStatus = 400
	statusCount = 600
)

func startShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.SetCookie(w, &http.Cookie{Name: "seen", Value: "yes"})
			fmt.Fprint(w, "basket=b17;")
			return
		}
		if c, err := r.Cookie("seen"); err != nil || c.Value != "yes" || r.URL.Path != "/b17" || r.Header.Get("X-From") != "branch" {
			t.Errorf("the second step asks for %s with the cookie %v, %v and the headers %v", r.URL, c, err, r.Header)
		}
		n := s.runs.Add(1) - 1
		w.WriteHeader(firstStatus + int(n%statusCount))
	}))
	t.Cleanup(s.Close)
	return s
}

const (
	shopStatus = "web.test.rspcode[Shop,basket]"
	shopFail   = "web.test.fail[Shop]"
	shopError  = "web.test.error[Shop]"
)

// shopHost is a host behind the proxy with a scenario; the site's address and a header come from macros.
func shopHost(s *shop) object {
	return object{
		"host": "shop", "proxy": object{"name": "branch"},
		"macros": []object{{"macro": "{$SITE}", "value": s.URL}},
		"httptests": []object{{
			"name": "Shop", "delay": "1s", "headers": []object{{"name": "X-From", "value": "branch"}},
			"steps": []object{
				{
					"name": "open", "url": "{$SITE}/", "required": "basket", "status_codes": "200",
					"variables": []object{{"name": "{basket}", "value": "regex:basket=([a-z0-9]+)"}},
				},
				{"name": "basket", "url": "{$SITE}/{basket}"},
			},
		}},
	}
}

// checkShop waits for runs of the scenario before, during and after an outage of the server: the values of none are lost or doubled, but for
// those of so many first runs as a proxy may forget.
func checkShop(t *testing.T, s *server, site *shop, forgets int) {
	t.Helper()
	got := func() []string { return s.values("shop", shopStatus) }
	until(t, "the scenario has values", func() bool { return len(got()) >= 2 })
	s.kill()
	during := site.runs.Load() + 3
	until(t, "the scenario goes on without server", func() bool { return site.runs.Load() >= during })
	s.start()
	behind := int(site.runs.Load()) + 2
	until(t, "the values of all runs are at the server", func() bool { return len(got()) >= behind })
	statuses := got()
	if statuses[0] > statuses[len(statuses)-1] {
		slices.Reverse(statuses)
	}
	if statuses[0] > strconv.Itoa(firstStatus+forgets) {
		t.Fatalf("the first run that is known has the status %s, want one of %d to %d", statuses[0], firstStatus, firstStatus+forgets)
	}
	first, _ := strconv.Atoi(statuses[0])
	for n, v := range statuses {
		if want := strconv.Itoa(first + n); v != want {
			t.Fatalf("value %d is the status %s, want %s: %q", n, v, want, statuses)
		}
	}
	for _, v := range s.values("shop", shopFail) {
		if v != "0" {
			t.Fatalf("step %s failed: %q", v, s.values("shop", shopError))
		}
	}
	until(t, "the second step has a time", func() bool { return len(s.values("shop", "web.test.time[Shop,basket,resp]")) > 0 })
}

// Our proxy runs the web scenarios of its hosts.
func TestTidemarkProxy_webScenario(t *testing.T) {
	t.Parallel()
	s, site := startServer(t, ""), startShop(t)
	s.tell("proxies", "add", "branch")
	s.importHosts(shopHost(site))
	p := startTidemarkProxy(t, s.trapper, "")
	checkShop(t, s, site, 0)
	until(t, "nothing is wrong with the proxy", func() bool { st := p.state(); return st.Connected && st.Dropped == 0 && len(st.Problems) == 0 })
}

// A zabbix_proxy runs the web scenarios that our server gives it.
func TestZabbixProxy_webScenario(t *testing.T) {
	t.Parallel()
	s, site := startServer(t, ""), startShop(t)
	s.tell("proxies", "add", "branch")
	s.importHosts(shopHost(site))
	startZabbixProxy(t, s, "")
	// zabbix_proxy runs a scenario once it is in its database, and drops values until the items are in its memory too.
	checkShop(t, s, site, 3)
}

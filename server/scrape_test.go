package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/collect/scrape"
	"tidemark/config"
)

// exposed is a target whose answer can be changed.
type exposed struct {
	*httptest.Server
	text  atomic.Pointer[string]
	asked atomic.Int64
}

func expose(t *testing.T, check func(*http.Request) bool) *exposed {
	e := &exposed{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer e.asked.Add(1)
		text := e.text.Load()
		if check != nil && !check(r) || text == nil {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, *text)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *exposed) set(text string) { e.text.Store(&text) }

func (e *exposed) address() string { return strings.TrimPrefix(e.URL, "http://") }

func jobs(t *testing.T, text string) []*config.ScrapeJob {
	t.Helper()
	c, err := config.Parse("test.yaml", []byte("scrape:\n  global: {scrape_interval: 1s}\n  scrape_configs:\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return c.Scrape.Jobs
}

// eventually polls for a minute.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if ok() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func targets(t *testing.T, at string) []scrape.Status {
	t.Helper()
	a, err := http.Get(at + "/api/scrape/targets")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	var answer scrapeTargets
	if err := json.NewDecoder(a.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer.Jobs
}

func has(t *testing.T, at, query string, want ...string) func() bool {
	return func() bool {
		return slices.Equal(instant(t, at, query, time.Now()), want)
	}
}

func TestScrape(t *testing.T) {
	target := expose(t, func(r *http.Request) bool {
		_, password, _ := r.BasicAuth()
		return password == "p" && r.URL.RawQuery == "collect=a" && r.URL.Path == "/m"
	})
	target.set("# HELP a_total Help of a.\n# TYPE a_total counter\na_total{job=\"own\",x=\"1\"} 5\nnan NaN\ngo_x 1\ntimed 7 " + fmt.Sprint(time.Now().UnixMilli()) + "\n")
	_, at, _ := runForTest(t, Options{Data: t.TempDir(), Scrape: jobs(t, fmt.Sprintf(`
    - job_name: j
      metrics_path: /m
      params: {collect: [a]}
      basic_auth: {username: u, password: p}
      static_configs:
        - targets: [%q, "dropped:1"]
          labels: {dc: east}
      relabel_configs:
        - {source_labels: [__address__], regex: "dropped:.*", action: drop}
        - {source_labels: [dc], regex: (.*), target_label: where, replacement: "${1}!"}
        - {target_label: instance, replacement: box}
      metric_relabel_configs:
        - {source_labels: [__name__], regex: go_.*, action: drop}
`, target.address()))})
	common := `"instance":"box","job":"j","where":"east!"`
	eventually(t, "a sample", has(t, at, `a_total`, `{"__name__":"a_total","dc":"east","exported_job":"own",`+common+`,"x":"1"} 5`))
	eventually(t, "up", has(t, at, `up`, `{"__name__":"up","dc":"east",`+common+`} 1`))
	eventually(t, "counts", has(t, at, `scrape_samples_scraped - scrape_samples_post_metric_relabeling`, `{"dc":"east",`+common+`} 1`))
	expect(t, instant(t, at, `go_x`, time.Now()))
	eventually(t, "metadata", func() bool {
		a, err := http.Get(at + "/api/v1/metadata?metric=a_total")
		if err != nil {
			return false
		}
		defer a.Body.Close()
		text, err := io.ReadAll(a.Body)
		return err == nil && strings.Contains(string(text), "Help of a.")
	})
	eventually(t, "the status", func() bool {
		st := targets(t, at)
		return len(st) == 1 && len(st[0].Targets) == 1 && st[0].Dropped == 1 && st[0].Targets[0].Health == "up" && st[0].Targets[0].Labels["where"] == "east!"
	})

	// A series that is not exposed any more leaves instant queries at once; the others stay.
	target.set("nan NaN\nb 1\n")
	eventually(t, "a_total to go", has(t, at, `a_total`))
	eventually(t, "b", has(t, at, `count(b)`, `{} 1`))
	// A target that fails is down, and all its series go.
	target.text.Store(nil)
	eventually(t, "up 0", has(t, at, `up`, `{"__name__":"up","dc":"east",`+common+`} 0`))
	eventually(t, "b to go", has(t, at, `b`))
	eventually(t, "the error", func() bool {
		st := targets(t, at)[0].Targets[0]
		return st.Health == "down" && strings.Contains(st.LastError, "401")
	})
}

func TestScrape_limits(t *testing.T) {
	wrong := []string{"a 1\nb 1\nc 1\n", "a{x=\"1\",y=\"2\",z=\"3\"} 1\n", "a{x=\"" + strings.Repeat("v", 50) + "\"} 1\n", "a 1\nnot a metric\n", strings.Repeat("# comment\n", 300)}
	limits := []string{"sample_limit: 2", "label_limit: 5", "label_value_length_limit: 40", "sample_limit: 9", "body_size_limit: 2KiB"}
	words := []string{"sample_limit", "label_limit", "label_value_length_limit", "invalid syntax", "body_size_limit"}
	text := ""
	for i := range wrong {
		e := expose(t, nil)
		e.set(wrong[i])
		text += fmt.Sprintf("    - {job_name: j%d, %s, static_configs: [{targets: [%q]}]}\n", i, limits[i], e.address())
	}
	s, at, _ := runForTest(t, Options{Data: t.TempDir(), Scrape: jobs(t, text)})
	for i := range wrong {
		eventually(t, limits[i], has(t, at, fmt.Sprintf(`sum(up{job="j%d"})`, i), `{} 0`))
		eventually(t, words[i], func() bool {
			st := targets(t, at)[i].Targets[0]
			return st.Health == "down" && strings.Contains(st.LastError, words[i])
		})
	}
	expect(t, instant(t, at, `a`, time.Now()))
	// What is over a limit makes no items: only the series about the scrapes are there.
	if n := s.series.Len(); n != 5*len(wrong) {
		t.Errorf("%d series, want %d", n, 5*len(wrong))
	}
}

func TestScrape_discovery(t *testing.T) {
	one, two, three := expose(t, nil), expose(t, nil), expose(t, nil)
	for _, e := range []*exposed{one, two, three} {
		e.set("v{host=\"inner\"} 1\n")
	}
	var groups atomic.Pointer[string]
	set := func(e *exposed) {
		text := fmt.Sprintf(`[{"targets":[%q],"labels":{"from":"http"}}]`, e.address())
		groups.Store(&text)
	}
	set(one)
	sd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, *groups.Load())
	}))
	defer sd.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "t.yaml")
	if err := os.WriteFile(file, []byte("- targets: ["+two.address()+"]\n  labels: {from: file}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, at, _ := runForTest(t, Options{Data: t.TempDir(), Scrape: jobs(t, fmt.Sprintf(`
    - job_name: d
      honor_labels: true
      relabel_configs: [{target_label: host, replacement: outer}, {target_label: instance, replacement: i}, {source_labels: [from], target_label: __tidemark_host__}]
      file_sd_configs: [{files: ["%s/*.yaml"], refresh_interval: 1s}]
      http_sd_configs: [{url: %q, refresh_interval: 1s, authorization: {credentials: token}}]
`, dir, sd.URL))})
	eventually(t, "both", has(t, at, `v`, `{"__name__":"v","from":"file","host":"inner","instance":"i","job":"d"} 1`, `{"__name__":"v","from":"http","host":"inner","instance":"i","job":"d"} 1`))
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the target of the file to go", has(t, at, `v`, `{"__name__":"v","from":"http","host":"inner","instance":"i","job":"d"} 1`))
	eventually(t, "its up to go", has(t, at, `count(up)`, `{} 1`))
	before := three.asked.Load()
	set(three)
	eventually(t, "the other target", func() bool { return three.asked.Load() > before+1 })
	eventually(t, "one series", has(t, at, `count(v)`, `{} 1`))
	// Discovery that fails keeps what it found.
	broken := `{`
	groups.Store(&broken)
	eventually(t, "an error", func() bool { return len(targets(t, at)[0].Errors) == 1 })
	before = three.asked.Load()
	eventually(t, "the target is still asked", func() bool { return three.asked.Load() > before+1 })
}

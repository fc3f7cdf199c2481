package metrics

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// binary is the path of the program under test.
var binary string

func TestMain(m *testing.M) { launch.Main(m, &binary) }

// patience is how long a test waits for something that must come.
const patience = 2 * time.Minute

// until waits for something that must come.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	launch.Until(t, patience, what, ok)
}

func ready(address string) func() bool {
	return func() bool {
		resp, err := http.Get("http://" + address)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
}

// file writes a file of a test and returns its path.
func file(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ask queries Prometheus' API at an address and returns a line for each series: its labels, then all its samples.
func ask(address, query string, at time.Time) ([]string, error) {
	resp, err := http.Get("http://" + address + "/api/v1/query?" + url.Values{"query": {query}, "time": {fmt.Sprintf("%.3f", float64(at.UnixMilli())/1000)}}.Encode())
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Value  json.RawMessage
				Values json.RawMessage
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	var lines []string
	for _, r := range answer.Data.Result {
		labels, err := json.Marshal(r.Metric)
		if err != nil {
			return nil, err
		}
		lines = append(lines, fmt.Sprintf("%s %s%s", labels, r.Value, r.Values))
	}
	slices.Sort(lines)
	return lines, nil
}

func TestMetrics(t *testing.T) {
	dir := t.TempDir()
	exporter, prometheus, server, trapper := freeport.Address(t), freeport.Address(t), freeport.Address(t), freeport.Address(t)
	killExporter := launch.Run(t, filepath.Join(dir, "exporter.log"), "/usr/bin/prometheus-node-exporter", "--web.listen-address="+exporter)
	settings := file(t, dir, "tidemark.yaml", fmt.Sprintf(`
data: %s/data
http: {listen: %q}
storage: {disk_space: 1GiB}
scrape:
  global: {scrape_interval: 1s}
  scrape_configs:
    - job_name: direct
      static_configs: [{targets: [%q]}]
`, dir, server, exporter))
	start := func() func() {
		kill := launch.Run(t, filepath.Join(dir, "server.log"), binary, "server", "--config", settings, "--trapper", trapper)
		until(t, "the server is ready", ready(server+"/-/ready"))
		return kill
	}
	kill := start()
	launch.Run(t, filepath.Join(dir, "prometheus.log"), "/usr/bin/prometheus", "--web.listen-address="+prometheus, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"),
		"--config.file="+file(t, dir, "prometheus.yml", fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - job_name: node
    static_configs: [{targets: [%q]}]
remote_write:
  - url: http://%s/api/v1/write
    queue_config: {batch_send_deadline: 500ms, min_backoff: 100ms, max_backoff: 1s}
`, exporter, server)))
	count := func(address, query string) int {
		lines, err := ask(address, query, time.Now())
		if err != nil {
			return -1
		}
		return len(lines)
	}
	until(t, "Prometheus' samples come", func() bool { return count(server, `up{job="node"} == 1`) == 1 })
	from := time.Now()
	for range 3 {
		time.Sleep(2 * time.Second) //nolint:forbidigo // samples come by themselves meanwhile
		kill()
		kill = start()
	}
	to := time.Now()
	// Every sample that Prometheus took is here, at its time, once, with its labels.
	query := fmt.Sprintf(`{job="node",__name__=~"up|scrape_samples_scraped|node_(cpu_seconds|network_receive_bytes)_total|node_memory_Mem.*|go_gc_duration_seconds"}[%dms]`, to.Sub(from).Milliseconds())
	want, err := ask(prometheus, query, to)
	if err != nil || len(want) < 10 {
		t.Fatal(len(want), err)
	}
	var got []string
	defer func() {
		if t.Failed() {
			t.Logf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}()
	until(t, "all of Prometheus' samples are there once", func() bool {
		got, err = ask(server, query, to)
		return err == nil && slices.Equal(got, want)
	})

	// Our own scrape of the same target has the same series.
	until(t, "the scrape has what Prometheus' has", func() bool {
		own, theirs := count(server, `{job="direct",__name__=~"node_.*"}`), count(prometheus, `{job="node",__name__=~"node_.*"}`)
		return own > 100 && own == theirs
	})
	if n := count(server, `node_memory_MemFree_bytes{job="direct"} / on (instance) node_memory_MemTotal_bytes{job="direct"}`); n != 1 {
		t.Errorf("%d series of a division, want 1", n)
	}
	// Only what a scrape since the start has had can be ended at once.
	until(t, "the target was scraped since the last start", func() bool {
		resp, err := http.Get("http://" + server + "/api/scrape/targets")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(text), `"health":"up"`)
	})
	killExporter()
	until(t, "the target is down and its series are gone", func() bool {
		return count(server, `up{job="direct"} == 0`) == 1 && count(server, `{job="direct",__name__=~"node_(memory|cpu)_.*"}`) == 0
	})
	until(t, "the series of the remote write are gone too", func() bool { return count(server, `{job="node",__name__=~"node_(memory|cpu)_.*"}`) == 0 })
}

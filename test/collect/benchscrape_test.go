package collect

import (
	"bufio"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// BenchmarkScrape has the whole server and a whole Prometheus, one after the other, scrape the same exporter 20 times a second and store it.
func BenchmarkScrape(b *testing.B) {
	exporter := freeport.Address(b)
	launch.Run(b, filepath.Join(b.TempDir(), "log"), "/usr/bin/prometheus-node-exporter", "--web.listen-address="+exporter)
	var config strings.Builder
	config.WriteString("  global: {scrape_interval: 1s, scrape_timeout: 1s}\n  scrape_configs:\n    - job_name: node\n      static_configs:\n")
	for n := range 20 {
		fmt.Fprintf(&config, "        - {targets: [%q], labels: {instance: n%d}}\n", exporter, n)
	}
	b.Run("tidemark", func(b *testing.B) {
		dir, address := b.TempDir(), freeport.Address(b)
		text := fmt.Sprintf("data: %s/data\nhttp: {listen: %q}\nstorage: {disk_space: 1GiB}\nscrape:\n%s", dir, address, config.String())
		pid, kill := launch.Group(b, filepath.Join(dir, "log"), binary, "server", "--config", write(b, dir, "conf", text), "--trapper", freeport.Address(b))
		defer kill()
		measureSamples(b, pid, address, "tidemark_scrape_samples_total")
	})
	b.Run("prometheus", func(b *testing.B) {
		dir, address := b.TempDir(), freeport.Address(b)
		text := strings.ReplaceAll("\n"+config.String(), "\n  ", "\n")
		pid, kill := launch.Group(b, filepath.Join(dir, "log"), "/usr/bin/prometheus", "--config.file="+write(b, dir, "conf", text), "--storage.tsdb.path="+dir+"/tsdb", "--web.listen-address="+address)
		defer kill()
		measureSamples(b, pid, address, "prometheus_tsdb_head_samples_appended_total")
	})
}

// measureSamples measures a process that counts its samples in a metric.
func measureSamples(b *testing.B, pid int, address, metric string) {
	b.Helper()
	for deadline := time.Now().Add(patience); samples(b, address, metric) == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatal("no samples")
		}
	}
	time.Sleep(warm) //nolint:forbidigo // samples come by themselves meanwhile
	_, before := groupTime(b, pid, "")
	from := samples(b, address, metric)
	time.Sleep(span()) //nolint:forbidigo // samples come by themselves meanwhile
	_, after := groupTime(b, pid, "")
	report(b, samples(b, address, metric)-from, after-before)
}

// samples is the sum of a metric of a process that may not have started yet.
func samples(b *testing.B, address, metric string) float64 {
	b.Helper()
	resp, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	sum := 0.0
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if name, _, _ := strings.Cut(name, "{"); name == metric {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				b.Fatal(err)
			}
			sum += v
		}
	}
	return sum
}

package config

import (
	"strings"
	"testing"
	"time"
)

const scrapeText = `scrape:
  global:
    scrape_interval: 15s
  scrape_configs:
    - job_name: node
      honor_labels: true
      sample_limit: 100
      body_size_limit: 1MiB
      basic_auth: {username: u, password: p}
      tls_config: {insecure_skip_verify: true}
      static_configs:
        - targets: ["a:9100", "b:9100"]
          labels: {dc: east}
      relabel_configs:
        - source_labels: [__address__]
          regex: (.*):.*
          target_label: machine
          replacement: ${1}
      metric_relabel_configs:
        - {source_labels: [__name__], regex: go_.*, action: drop}
    - job_name: pods
      scrape_interval: 5s
      file_sd_configs:
        - files: [targets/*.json]
      http_sd_configs:
        - {url: "http://sd/targets", refresh_interval: 10s}
`

func TestScrape(t *testing.T) {
	c, err := Parse("test.yaml", []byte(scrapeText))
	if err != nil {
		t.Fatal(err)
	}
	node, pods := c.Scrape.Jobs[0], c.Scrape.Jobs[1]
	if node.Interval != 15*time.Second || node.Timeout != 10*time.Second || pods.Interval != 5*time.Second || pods.Timeout != 5*time.Second {
		t.Errorf("intervals %v %v %v %v", node.Interval, node.Timeout, pods.Interval, pods.Timeout)
	}
	if node.BodyBytes != 1<<20 || node.BasicAuth.Password != "p" || !node.TLSConfig.InsecureSkipVerify || node.Relabel[0].Replacement != "${1}" || node.MetricRelabel[0].Action != "drop" {
		t.Errorf("job %+v", node)
	}
	if pods.HTTPSDConfigs[0].Refresh != 10*time.Second || pods.FileSDConfigs[0].Refresh != 30*time.Second || pods.Scheme != "http" || pods.MetricsPath != "/metrics" {
		t.Errorf("job %+v", pods)
	}
}

func TestScrape_mistakes(t *testing.T) {
	f := func(old, replaced, want string) {
		t.Helper()
		text := strings.Replace(scrapeText, old, replaced, 1)
		if text == scrapeText {
			t.Fatalf("%q is not in the text", old)
		}
		if _, err := Parse("test.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", replaced, err, want)
		}
	}
	f("honor_labels: true", "honour_labels: true", "honour_labels")
	f("honor_labels: true", "honour_labels: true", "scrape: honour_labels: no such setting in this place")
	f("scrape_interval: 15s", "scrape_intervall: 15s", "test.yaml:3:1: scrape: scrape_intervall: no such setting in this place")
	f("honor_labels: true", "honor_labels: perhaps", "perhaps")
	f("sample_limit: 100", "sample_limit: -1", "expected 0 for none")
	f("15s", "fast", `found "fast"; expected a duration`)
	f("scrape_interval: 5s", "scrape_interval: 1ms", "expected at least 1s")
	f("job_name: pods", "job_name: node", "is there twice")
	f("(.*):.*", "(", "relabel_configs 1: regex")
	f("action: drop", "action: forget", "expected one of")
	f("targets/*.json", "targets.txt", "expected a name that ends with")
	f("http://sd/targets", "sd/targets", "expected http://")
	f(`"a:9100"`, `"http://a:9100/"`, "expected host:port")
	f("username: u", "username: u, password_file: f", "not both")
}

// TestScrape_manyMistakes names each key that is none at its own line, and no type of the program.
func TestScrape_manyMistakes(t *testing.T) {
	text := strings.Replace(strings.Replace(scrapeText, "scrape_interval: 15s", "every: 15s", 1), "honor_labels", "honour_labels", 1)
	_, err := Parse("test.yaml", []byte(text))
	if err == nil || strings.Count(err.Error(), "no such setting in this place") != 2 || strings.Contains(err.Error(), "type") {
		t.Fatalf("got %v", err)
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		if !strings.HasPrefix(line, "test.yaml:") || strings.Count(line, "no such setting") != 1 {
			t.Errorf("line %q", line)
		}
	}
}

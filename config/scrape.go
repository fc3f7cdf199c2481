package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v4"
)

// Limits and defaults of scrapes.
const (
	// MaxScrapeConfigs bounds the jobs.
	MaxScrapeConfigs = 1000
	// MinScrapeInterval is the shortest time between two scrapes of a target.
	MinScrapeInterval = time.Second
	// MaxScrapeBytes bounds what a target may answer, MaxScrapeSamples how many samples.
	MaxScrapeBytes   = 64 << 20
	MaxScrapeSamples = 50_000

	defaultScrapeInterval = time.Minute
	defaultScrapeTimeout  = 10 * time.Second
	defaultScrapeBytes    = 16 << 20
	defaultRefresh        = 30 * time.Second
)

// Scrape are the targets that are asked for metrics. The keys are Prometheus'.
type Scrape struct {
	Global struct {
		ScrapeInterval string `yaml:"scrape_interval"`
		ScrapeTimeout  string `yaml:"scrape_timeout"`
		// NativeHistograms and ClassicToo are for jobs that do not say otherwise.
		NativeHistograms bool `yaml:"scrape_native_histograms"`
		ClassicToo       bool `yaml:"always_scrape_classic_histograms"`
	} `yaml:"global"`
	Jobs []*ScrapeJob `yaml:"scrape_configs"`
}

// ScrapeJob is one entry of scrape_configs. The fields without a key are made of those before them.
type ScrapeJob struct {
	JobName        string              `yaml:"job_name"`
	ScrapeInterval string              `yaml:"scrape_interval"`
	ScrapeTimeout  string              `yaml:"scrape_timeout"`
	MetricsPath    string              `yaml:"metrics_path"`
	Scheme         string              `yaml:"scheme"`
	Params         map[string][]string `yaml:"params"`
	// HonorLabels keeps labels of the target where they meet those of the configuration; HonorTimestamps, if not false, its times.
	HonorLabels     bool  `yaml:"honor_labels"`
	HonorTimestamps *bool `yaml:"honor_timestamps"`
	// The limits; zero is none, but for those of the product.
	SampleLimit           int    `yaml:"sample_limit"`
	LabelLimit            int    `yaml:"label_limit"`
	LabelNameLengthLimit  int    `yaml:"label_name_length_limit"`
	LabelValueLengthLimit int    `yaml:"label_value_length_limit"`
	TargetLimit           int    `yaml:"target_limit"`
	BodySizeLimit         string `yaml:"body_size_limit"`
	// NativeHistograms asks for the format in which targets give native histograms; ClassicToo takes the classic one too where a histogram is both.
	// BucketLimit is how many buckets one may have before its resolution is halved.
	NativeHistograms *bool `yaml:"scrape_native_histograms"`
	ClassicToo       *bool `yaml:"always_scrape_classic_histograms"`
	BucketLimit      int   `yaml:"native_histogram_bucket_limit"`

	ScrapeHTTP `yaml:",inline"`

	StaticConfigs []ScrapeGroup  `yaml:"static_configs"`
	FileSDConfigs []ScrapeFiles  `yaml:"file_sd_configs"`
	HTTPSDConfigs []ScrapeHTTPSD `yaml:"http_sd_configs"`

	RelabelConfigs       []ScrapeRelabel `yaml:"relabel_configs"`
	MetricRelabelConfigs []ScrapeRelabel `yaml:"metric_relabel_configs"`

	Interval, Timeout time.Duration     `yaml:"-"`
	BodyBytes         int64             `yaml:"-"`
	Relabel           []*relabel.Config `yaml:"-"`
	MetricRelabel     []*relabel.Config `yaml:"-"`
}

// ScrapeHTTP is how a server is asked.
type ScrapeHTTP struct {
	BasicAuth *struct {
		Username     string `yaml:"username"`
		Password     string `yaml:"password"`
		PasswordFile string `yaml:"password_file"`
	} `yaml:"basic_auth"`
	Authorization *struct {
		Type            string `yaml:"type"`
		Credentials     string `yaml:"credentials"`
		CredentialsFile string `yaml:"credentials_file"`
	} `yaml:"authorization"`
	TLSConfig struct {
		CAFile             string `yaml:"ca_file"`
		CertFile           string `yaml:"cert_file"`
		KeyFile            string `yaml:"key_file"`
		ServerName         string `yaml:"server_name"`
		InsecureSkipVerify bool   `yaml:"insecure_skip_verify"`
	} `yaml:"tls_config"`
	FollowRedirects   *bool `yaml:"follow_redirects"`
	EnableCompression *bool `yaml:"enable_compression"`
}

// ScrapeGroup is a group of targets with labels; it has the same form in files and over HTTP.
type ScrapeGroup struct {
	Targets []string          `yaml:"targets" json:"targets"`
	Labels  map[string]string `yaml:"labels" json:"labels"`
}

// ScrapeFiles are files with groups of targets, in YAML or JSON; the last part of a path may have a star.
type ScrapeFiles struct {
	Files           []string      `yaml:"files"`
	RefreshInterval string        `yaml:"refresh_interval"`
	Refresh         time.Duration `yaml:"-"`
}

// ScrapeHTTPSD is an address that answers groups of targets in JSON.
type ScrapeHTTPSD struct {
	URL             string `yaml:"url"`
	RefreshInterval string `yaml:"refresh_interval"`
	ScrapeHTTP      `yaml:",inline"`
	Refresh         time.Duration `yaml:"-"`
}

// ScrapeRelabel is a step of relabelling.
type ScrapeRelabel struct {
	SourceLabels []string `yaml:"source_labels"`
	Separator    *string  `yaml:"separator"`
	Regex        *string  `yaml:"regex"`
	Modulus      uint64   `yaml:"modulus"`
	TargetLabel  string   `yaml:"target_label"`
	Replacement  *string  `yaml:"replacement"`
	Action       string   `yaml:"action"`
}

// scrape reads the section of scrapes. Variables of the environment are not expanded in it: ${1} is part of relabelling.
func (p *parser) scrape(n *yaml.Node) {
	var s Scrape
	if err := n.Load(&s, yaml.WithKnownFields()); err != nil {
		p.scrapeWrong(n, err)
		return
	}
	p.config.Scrape = s
	p.config.set["scrape"] = at(n)
	for _, err := range s.finish() {
		p.wrong(at(n), "scrape", "%v", err)
	}
}

// What the YAML package says of values that do not fit: the place of each, and keys that are none.
var (
	typePlace  = regexp.MustCompile(`line (\d+)(?:, column (\d+))?: `)
	unknownKey = regexp.MustCompile(`^field (.*) not found in type (?s:.*)$`)
)

func (p *parser) scrapeWrong(n *yaml.Node, err error) {
	text := err.Error()
	found := typePlace.FindAllStringSubmatchIndex(text, -1)
	if len(found) == 0 {
		p.wrong(at(n), "scrape", "%v", err)
		return
	}
	for i, m := range found {
		place := at(n)
		_, _ = fmt.Sscan(text[m[2]:m[3]], &place.line) // digits only
		if place.column = 1; m[4] >= 0 {
			_, _ = fmt.Sscan(text[m[4]:m[5]], &place.column)
		}
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		p.wrong(place, "scrape", "%s", unknownKey.ReplaceAllString(strings.TrimRight(text[m[1]:end], "; \n"), "$1: no such setting in this place"))
	}
}

// finish checks the jobs and makes what is made of their texts.
func (s *Scrape) finish() []error {
	var wrong []error
	interval, err := scrapeDuration("global.scrape_interval", s.Global.ScrapeInterval, defaultScrapeInterval)
	wrong = append(wrong, err)
	timeout, err := scrapeDuration("global.scrape_timeout", s.Global.ScrapeTimeout, min(defaultScrapeTimeout, interval))
	wrong = append(wrong, err)
	if len(s.Jobs) > MaxScrapeConfigs {
		wrong = append(wrong, fmt.Errorf("found %d scrape_configs; expected at most %d", len(s.Jobs), MaxScrapeConfigs))
	}
	seen := map[string]bool{}
	for i, j := range s.Jobs {
		if j == nil || j.JobName == "" {
			wrong = append(wrong, fmt.Errorf("scrape_configs %d: found no job_name; expected one", i+1))
			continue
		}
		if seen[j.JobName] {
			wrong = append(wrong, fmt.Errorf("job_name %q is there twice; expected once", j.JobName))
		}
		seen[j.JobName] = true
		if j.NativeHistograms == nil {
			j.NativeHistograms = &s.Global.NativeHistograms
		}
		if j.ClassicToo == nil {
			j.ClassicToo = &s.Global.ClassicToo
		}
		for _, err := range j.finish(interval, timeout) {
			wrong = append(wrong, fmt.Errorf("job_name %q: %w", j.JobName, err))
		}
	}
	return slices.DeleteFunc(wrong, func(err error) bool { return err == nil })
}

func scrapeDuration(key, text string, fallback time.Duration) (time.Duration, error) {
	if text == "" {
		return fallback, nil
	}
	d, err := ParseDuration(text)
	if err == nil && d < MinScrapeInterval {
		err = fmt.Errorf("found %s; expected at least %s", text, MinScrapeInterval)
	}
	if err != nil {
		return fallback, fmt.Errorf("%s: %w", key, err)
	}
	return d, nil
}

func (j *ScrapeJob) finish(interval, timeout time.Duration) (wrong []error) {
	say := func(err error) {
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	var err error
	j.Interval, err = scrapeDuration("scrape_interval", j.ScrapeInterval, interval)
	say(err)
	j.Timeout, err = scrapeDuration("scrape_timeout", j.ScrapeTimeout, min(timeout, j.Interval))
	say(err)
	if j.Timeout > j.Interval {
		say(fmt.Errorf("scrape_timeout: found %s; expected at most the interval of %s", j.Timeout, j.Interval))
	}
	if j.Scheme == "" {
		j.Scheme = "http"
	}
	if j.MetricsPath == "" {
		j.MetricsPath = "/metrics"
	}
	if j.Scheme != "http" && j.Scheme != "https" {
		say(fmt.Errorf("scheme: found %.40q; expected http or https", j.Scheme))
	}
	j.BodyBytes = defaultScrapeBytes
	if j.BodySizeLimit != "" && j.BodySizeLimit != "0" {
		j.BodyBytes, err = ParseSize(j.BodySizeLimit)
		if err == nil && (j.BodyBytes < 1 || j.BodyBytes > MaxScrapeBytes) {
			err = fmt.Errorf("found %.40q; expected 1B to %s", j.BodySizeLimit, FormatSize(MaxScrapeBytes))
		}
		if err != nil {
			say(fmt.Errorf("body_size_limit: %w", err))
		}
	}
	for _, limit := range []int{j.SampleLimit, j.LabelLimit, j.LabelNameLengthLimit, j.LabelValueLengthLimit, j.TargetLimit, j.BucketLimit} {
		if limit < 0 {
			say(fmt.Errorf("a limit is %d; expected 0 for none, or more", limit))
		}
	}
	say(j.check())
	j.Relabel, err = relabelConfigs("relabel_configs", j.RelabelConfigs)
	say(err)
	j.MetricRelabel, err = relabelConfigs("metric_relabel_configs", j.MetricRelabelConfigs)
	say(err)
	for _, err := range j.finishDiscovery() {
		say(err)
	}
	return wrong
}

func (j *ScrapeJob) finishDiscovery() (wrong []error) {
	if len(j.StaticConfigs)+len(j.FileSDConfigs)+len(j.HTTPSDConfigs) == 0 {
		wrong = append(wrong, errors.New("found no targets; expected static_configs, file_sd_configs or http_sd_configs"))
	}
	for _, g := range j.StaticConfigs {
		wrong = append(wrong, g.Check())
	}
	var err error
	for i := range j.FileSDConfigs {
		f := &j.FileSDConfigs[i]
		f.Refresh, err = scrapeDuration("file_sd_configs.refresh_interval", f.RefreshInterval, defaultRefresh)
		wrong = append(wrong, err)
		for _, file := range f.Files {
			if ext := filepath.Ext(file); ext != ".yml" && ext != ".yaml" && ext != ".json" {
				wrong = append(wrong, fmt.Errorf("file_sd_configs.files: found %.100q; expected a name that ends with .yml, .yaml or .json", file))
			}
			if strings.Contains(filepath.Dir(file), "*") {
				wrong = append(wrong, fmt.Errorf("file_sd_configs.files: found %.100q; expected a star in the last part only", file))
			}
		}
	}
	for i := range j.HTTPSDConfigs {
		h := &j.HTTPSDConfigs[i]
		h.Refresh, err = scrapeDuration("http_sd_configs.refresh_interval", h.RefreshInterval, time.Minute)
		wrong = append(wrong, err, h.check())
		if u, err := url.Parse(h.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			wrong = append(wrong, fmt.Errorf("http_sd_configs.url: found %.100q; expected http://… or https://…", h.URL))
		}
	}
	return wrong
}

// Check reports labels that no target can have.
func (g ScrapeGroup) Check() error {
	for _, name := range slices.Sorted(maps.Keys(g.Labels)) {
		if !model.UTF8Validation.IsValidLabelName(name) {
			return fmt.Errorf("labels: found the name %.60q; expected UTF-8 and at least one character", name)
		}
	}
	for _, t := range g.Targets {
		if t == "" || len(t) > 512 || strings.ContainsAny(t, "/ \t\n") {
			return fmt.Errorf("targets: found %.60q; expected host:port", t)
		}
	}
	return nil
}

func (h *ScrapeHTTP) check() error {
	t := h.TLSConfig
	switch {
	case h.BasicAuth != nil && h.Authorization != nil:
		return errors.New("expected basic_auth or authorization, not both")
	case h.BasicAuth != nil && h.BasicAuth.Password != "" && h.BasicAuth.PasswordFile != "":
		return errors.New("basic_auth: expected password or password_file, not both")
	case h.Authorization != nil && (h.Authorization.Credentials == "") == (h.Authorization.CredentialsFile == ""):
		return errors.New("authorization: expected credentials or credentials_file, one of them")
	case h.Authorization != nil && strings.EqualFold(h.Authorization.Type, "basic"):
		return errors.New("authorization.type: found Basic; expected basic_auth for it")
	case (t.CertFile == "") != (t.KeyFile == ""):
		return errors.New("tls_config: expected both cert_file and key_file, or none")
	}
	return nil
}

// relabelConfigs gives steps the form of Prometheus' package.
func relabelConfigs(key string, steps []ScrapeRelabel) ([]*relabel.Config, error) {
	var out []*relabel.Config
	for i, step := range steps {
		c := relabel.DefaultRelabelConfig
		for _, name := range step.SourceLabels {
			c.SourceLabels = append(c.SourceLabels, model.LabelName(name))
		}
		c.Modulus, c.TargetLabel = step.Modulus, step.TargetLabel
		if step.Separator != nil {
			c.Separator = *step.Separator
		}
		if step.Replacement != nil {
			c.Replacement = *step.Replacement
		}
		if step.Action != "" {
			c.Action = relabel.Action(strings.ToLower(step.Action))
			if !slices.Contains(relabelActions, c.Action) {
				return nil, fmt.Errorf("%s %d: action %.40q; expected one of %v", key, i+1, step.Action, relabelActions)
			}
		}
		if step.Regex != nil {
			regex, err := relabel.NewRegexp(*step.Regex)
			if err != nil {
				return nil, fmt.Errorf("%s %d: regex: %w", key, i+1, err)
			}
			c.Regex = regex
		}
		if err := c.Validate(model.UTF8Validation); err != nil {
			return nil, fmt.Errorf("%s %d: %w", key, i+1, err)
		}
		out = append(out, &c)
	}
	return out, nil
}

var relabelActions = []relabel.Action{
	relabel.Replace, relabel.Keep, relabel.Drop, relabel.KeepEqual, relabel.DropEqual, relabel.HashMod, relabel.LabelMap, relabel.LabelDrop,
	relabel.LabelKeep, relabel.Lowercase, relabel.Uppercase,
}

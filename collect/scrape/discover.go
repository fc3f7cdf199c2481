package scrape

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"tidemark/config"
	"tidemark/internal/yamlload"
)

const (
	// maxDiscoveryBytes bounds a file or an answer with targets, maxFiles the files of one pattern.
	maxDiscoveryBytes = 8 << 20
	maxFiles          = 1000
	discoveryTimeout  = 30 * time.Second
)

// every calls fn now and at each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, fn func()) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		fn()
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// watchFiles reads files with targets again and again; a file that is wrong leaves its targets as they were.
func (j *job) watchFiles(ctx context.Context, c *config.ScrapeFiles) error {
	known := map[string]bool{}
	return every(ctx, c.Refresh, func() {
		now := map[string]bool{}
		for _, pattern := range c.Files {
			paths, err := filepath.Glob(pattern)
			if err == nil && len(paths) > maxFiles {
				err = fmt.Errorf("found %d files; expected at most %d", len(paths), maxFiles)
			}
			if err != nil {
				j.update(ctx, "file "+pattern, nil, err)
				return
			}
			for _, path := range paths {
				now[path] = true
				groups, err := readFile(path)
				j.update(ctx, "file "+path, groups, err)
			}
		}
		for path := range known {
			if !now[path] {
				j.update(ctx, "file "+path, nil, nil)
			}
		}
		known = now
	})
}

func readFile(path string) ([]config.ScrapeGroup, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxDiscoveryBytes+1))
	if err != nil {
		return nil, err
	}
	return decodeGroups(text, filepath.Ext(path) == ".json", path)
}

// decodeGroups reads groups of targets and gives each the meta label of its file, if there is one.
func decodeGroups(text []byte, isJSON bool, path string) ([]config.ScrapeGroup, error) {
	if len(text) > maxDiscoveryBytes {
		return nil, fmt.Errorf("more than %d bytes of targets", maxDiscoveryBytes)
	}
	var groups []config.ScrapeGroup
	var err error
	if isJSON {
		err = json.Unmarshal(text, &groups)
	} else if err = yamlload.Load(text, &groups, yaml.WithKnownFields()); err != nil && strings.Contains(err.Error(), "no documents") {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("expected a list of groups with targets and labels: %w", err)
	}
	for i := range groups {
		if err := groups[i].Check(); err != nil {
			return nil, err
		}
		if path == "" {
			continue
		}
		labels := maps.Clone(groups[i].Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels["__meta_filepath"] = path
		groups[i].Labels = labels
	}
	return slices.Clip(groups), nil
}

// watchHTTP asks an address for targets.
func (j *job) watchHTTP(ctx context.Context, c *config.ScrapeHTTPSD, client *client) error {
	return every(ctx, c.Refresh, func() {
		groups, err := askTargets(ctx, c, client, j.s.o.Agent)
		if ctx.Err() != nil {
			return
		}
		j.update(ctx, "http "+c.URL, groups, err)
	})
}

func askTargets(ctx context.Context, c *config.ScrapeHTTPSD, client *client, agent string) ([]config.ScrapeGroup, error) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", agent)
	r.Header.Set("X-Prometheus-Refresh-Interval-Seconds", fmt.Sprint(c.Refresh.Seconds()))
	body, contentType, err := client.read(r, nil, maxDiscoveryBytes, nil)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(contentType, "application/json") {
		return nil, fmt.Errorf("the answer has the type %.60q; expected application/json", contentType)
	}
	groups, err := decodeGroups(body, true, "")
	for i := range groups {
		if groups[i].Labels == nil {
			groups[i].Labels = map[string]string{}
		}
		groups[i].Labels["__meta_url"] = c.URL
	}
	return groups, err
}

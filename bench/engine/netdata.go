package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// netdataThreads are the writers and readers of Netdata's test: it has a writer for each of its 32 charts.
const netdataThreads = 32

// netdataGenerators are the numbers of the kinds of values in netdata/shim.c.
var netdataGenerators = map[string]int{"netdata": 0, "gauge": 1, "counter": 2, "constant": 3}

// netdataPhases are those of its test.
var netdataPhases = []string{"write", "mixed", "read"}

// runNetdata runs its test, which has all phases in one go, and returns what each measured by name. points, if not zero, ends each series there.
func (p *plan) runNetdata(ctx context.Context, kind string, cacheBytes int64, group *cgroup, points int) (map[string]figures, error) {
	seconds := int(p.duration / time.Second)
	threads := fmt.Sprintf("%d,%d,%d,%d,%d,0", seconds, netdataThreads, netdataThreads, seconds, cacheBytes>>20)
	args := group.command([]string{"bash", p.netdata, threads, strconv.Itoa(seconds)})
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Env = append(os.Environ(), fmt.Sprintf("GEN=%d", netdataGenerators[kind]), fmt.Sprintf("MAXT=%d", points), "TMPDIR="+p.dir)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	phases := map[string]figures{}
	for line := range strings.Lines(string(out)) {
		if name, f, ok := parsePhase(line); ok {
			phases[name] = f
		}
	}
	if err == nil && len(phases) != len(netdataPhases) {
		err = fmt.Errorf("%d phases, expected %d", len(phases), len(netdataPhases))
	}
	if err != nil {
		return nil, fmt.Errorf("netdata's stress test: %w: %s", err, strings.TrimSpace(errs.String()))
	}
	return phases, nil
}

// parsePhase reads a line of netdata/shim.c.
func parsePhase(line string) (name string, f figures, ok bool) {
	words := strings.Fields(line)
	if len(words) < 3 || words[0] != "PHASE" {
		return "", f, false
	}
	values := map[string]float64{}
	for _, word := range words[2:] {
		key, text, _ := strings.Cut(word, "=")
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return "", f, false
		}
		values[key] = value
	}
	f = figures{Writes: values["writes"], Reads: values["reads"], Cores: values["cores"], RSSBytes: int64(values["rss"])}
	if values["samples"] > 0 {
		f.BytesPerSample = values["disk"] / values["samples"]
	}
	return words[1], f, true
}

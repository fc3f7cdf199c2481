package self

import (
	"fmt"
	"time"

	"tidemark/wire/exposition"
)

// fill are the metrics that tell how full something is.
type fill struct{ used, limit string }

// fills are the caches by Zabbix's names. Indexes are a part of the history cache here, and the engine keeps trends in its tiers.
var fills = map[string]fill{
	"wcache,history": {"tidemark_histcache_used_bytes", "tidemark_histcache_limit_bytes"},
	"wcache,index":   {"tidemark_histcache_used_bytes", "tidemark_histcache_limit_bytes"},
	"wcache,trend":   {"tidemark_trendcache_waiting_hours", "tidemark_trendcache_limit_hours"}, // hours, not bytes
	"vcache,buffer":  {"tidemark_valuecache_used_bytes", "tidemark_valuecache_limit_bytes"},
	"rcache,buffer":  {"tidemark_confcache_used_bytes", "tidemark_confcache_limit_bytes"},
}

// typed are the values of each kind by Zabbix's names.
var typed = map[string]string{
	"all": "tidemark_histsync_values_total", "float": `tidemark_histsync_typed_values_total{type="float"}`,
	"uint": `tidemark_histsync_typed_values_total{type="unsigned"}`, "str": `tidemark_histsync_typed_values_total{type="char"}`,
	"log": `tidemark_histsync_typed_values_total{type="log"}`, "text": `tidemark_histsync_typed_values_total{type="text"}`,
	"bin":           `tidemark_histsync_typed_values_total{type="binary"}`,
	"not supported": `tidemark_histsync_typed_values_total{type="unsupported"}`,
}

// cache is zabbix[wcache,…], [rcache,…], [vcache,…] and [tcache,…].
func (c *Checker) cache(params []string, now time.Time) (string, error) {
	cache, part, mode := params[0], param(params, 1), param(params, 2)
	page, err := c.metrics(now)
	if err != nil {
		return "", err
	}
	if cache == "wcache" && part == "values" {
		if mode == "" {
			mode = "all"
		}
		name, ok := typed[mode]
		if !ok {
			return "", fmt.Errorf("%q is no kind of values; expected all, float, uint, str, log, text, bin or not supported", mode)
		}
		return number(value(page, name))
	}
	if cache == "vcache" && part == "cache" {
		return valueCache(page, mode)
	}
	if cache == "tcache" && part == "cache" {
		return trendFunctionCache(page, mode)
	}
	f, ok := fills[cache+","+part]
	if !ok {
		return "", errKey
	}
	used, limit := value(page, f.used), value(page, f.limit)
	if mode == "" {
		mode = "pfree"
	}
	switch mode {
	case "used":
		return number(used)
	case "total":
		return number(limit)
	case "free":
		return number(max(0, limit-used))
	case "pused":
		return number(percent(used, limit))
	case "pfree":
		return number(100 - percent(used, limit))
	}
	return "", fmt.Errorf("%q is not known; expected total, free, used, pfree or pused", mode)
}

// percent is the share in use; of something without a limit it is 0.
func percent(used, limit float64) float64 {
	if limit <= 0 {
		return 0
	}
	return min(100, 100*used/limit)
}

func valueCache(page *exposition.Page, mode string) (string, error) {
	hits, misses := value(page, "tidemark_valuecache_hits_total"), value(page, "tidemark_valuecache_history_reads_total")
	switch mode {
	case "requests":
		return number(hits + misses)
	case "hits":
		return number(hits)
	case "misses":
		return number(misses)
	case "mode":
		// 0 is normal, 1 low memory.
		return number(value(page, "tidemark_valuecache_low_memory"))
	}
	return "", fmt.Errorf("%q is not known; expected requests, hits, misses or mode", mode)
}

// trendFunctionCache is what functions of trends asked for lately.
func trendFunctionCache(page *exposition.Page, mode string) (string, error) {
	hits, misses := value(page, "tidemark_trendfunctions_hits_total"), value(page, "tidemark_trendfunctions_misses_total")
	items, limit := value(page, "tidemark_trendfunctions_answers"), value(page, "tidemark_trendfunctions_answers_limit")
	switch mode {
	case "", "all", "requests":
		return number(hits + misses)
	case "hits":
		return number(hits)
	case "misses":
		return number(misses)
	case "phits":
		return number(percent(hits, hits+misses))
	case "pmisses":
		return number(percent(misses, hits+misses))
	case "items":
		return number(items)
	case "pitems":
		return number(percent(items, limit))
	}
	return "", fmt.Errorf("%q is not known; expected requests, hits, phits, misses, pmisses, items or pitems", mode)
}

// sampled reads the counters of busy seconds.
func (c *Checker) sampled(page *exposition.Page, now time.Time) sample {
	s := sample{at: now, busy: make(map[string]float64, len(c.processes))}
	for name, p := range c.processes {
		if p.Percent == nil {
			s.busy[name] = value(page, p.BusySeconds...)
		}
	}
	return s
}

// process is zabbix[process,type,mode,state]. All processes of one type are busy alike, so that avg, min, max and each number are the
// same.
func (c *Checker) process(params []string, now time.Time) (string, error) {
	name, mode, state := param(params, 1), param(params, 2), param(params, 3)
	p := c.processes[name]
	if p == nil {
		return "", fmt.Errorf("no %q processes are started", name)
	}
	if mode == "" {
		mode = "avg"
	}
	if state == "" {
		state = "busy"
	}
	if mode == "count" {
		return whole(p.Count)
	}
	if state != "busy" && state != "idle" {
		return "", fmt.Errorf("%q is no state; expected busy or idle", state)
	}
	busy, err := c.busy(p, now)
	if err != nil {
		return "", err
	}
	if state == "idle" {
		busy = 100 - busy
	}
	return number(busy)
}

// busy is the share of the last minute, or of the time since the first look, that a process worked.
func (c *Checker) busy(p *Process, now time.Time) (float64, error) {
	if p.Percent != nil {
		return min(100, max(0, p.Percent())), nil
	}
	page, err := c.metrics(now)
	if err != nil {
		return 0, err
	}
	newest := value(page, p.BusySeconds...)
	since, before := c.o.Started, 0.0
	c.mu.Lock()
	at := c.pageAt
	for _, s := range c.samples {
		if at.Sub(s.at) < sampleEvery {
			break
		}
		since, before = s.at, s.busy[p.Name]
		if at.Sub(s.at) <= busyOver {
			break
		}
	}
	c.mu.Unlock()
	seconds := at.Sub(since).Seconds() * float64(max(1, p.Count))
	if seconds <= 0 {
		return 0, nil
	}
	return min(100, max(0, 100*(newest-before)/seconds)), nil
}

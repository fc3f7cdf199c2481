package trial

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// bytesPerValue is what a value takes as it comes: eight bytes of time and eight of number. Ratios are counted from it.
const bytesPerValue = 16

// Range is the least and the greatest of what the rounds measured.
type Range struct {
	Least    float64 `json:"least"`
	Greatest float64 `json:"greatest"`
}

// overlaps reports whether two ranges have something in common, so that a difference is noise.
func (r Range) overlaps(o Range) bool { return r.Least <= o.Greatest && o.Least <= r.Greatest }

// Spread is how far the rounds lie apart.
type Spread struct {
	Ratio        Range `json:"ratio"`
	WriteCPU     Range `json:"write_cpu_ms_per_million"`
	WriteWall    Range `json:"write_ms_per_million"`
	QueryP50     Range `json:"query_p50_ms"`
	QueryP99     Range `json:"query_p99_ms"`
	QueryColdP50 Range `json:"query_cold_p50_ms"`
	QueryColdP99 Range `json:"query_cold_p99_ms"`
}

// Candidate is what was measured of a codec with a size of extents. Figures are medians over the rounds, sizes are of all rounds together.
type Candidate struct {
	// Codec is empty and ExtentBytes zero for the store as it is.
	Codec       string `json:"codec"`
	ExtentBytes int    `json:"extent_bytes"`
	// Ratio is how much smaller the values are than 16 bytes each.
	Ratio          float64 `json:"ratio"`
	BytesPerSample float64 `json:"bytes_per_sample"`
	// WriteCPU and WriteWall are milliseconds for writing a million values anew; zero for the store as it is.
	WriteCPU  float64 `json:"write_cpu_ms_per_million"`
	WriteWall float64 `json:"write_ms_per_million"`
	// QueryP50 and QueryP99 are milliseconds with warm caches, the cold ones with empty ones.
	QueryP50     float64 `json:"query_p50_ms"`
	QueryP99     float64 `json:"query_p99_ms"`
	QueryColdP50 float64 `json:"query_cold_p50_ms"`
	QueryColdP99 float64 `json:"query_cold_p99_ms"`
	// ProjectedRetentionDays is how far back the quota reaches, ProjectedBytes what the closed pairs of the store would take.
	ProjectedRetentionDays float64 `json:"projected_retention_days"`
	ProjectedBytes         int64   `json:"projected_bytes"`
	Spread                 Spread  `json:"spread"`
}

// Name is the codec with the size of its extents.
func (c *Candidate) Name() string {
	if c.Codec == "" {
		return "as it is"
	}
	return c.Codec + ", " + sizeText(c.ExtentBytes)
}

// Recommended says what to do.
type Recommended struct {
	// Codec is empty when everything should stay as it is.
	Codec       string `json:"codec"`
	ExtentBytes int    `json:"extent_bytes"`
	Text        string `json:"text"`
}

// Report is the result of a trial.
type Report struct {
	Candidates  []Candidate `json:"candidates"`
	Current     Candidate   `json:"current"`
	Recommended Recommended `json:"recommended"`
	Rounds      int         `json:"rounds"`
	// SamplePairs of Pairs closed ones were tried, SampleBytes of Bytes; a pair in several rounds counts once.
	Pairs       int   `json:"pairs"`
	Bytes       int64 `json:"bytes"`
	SamplePairs int   `json:"sample_pairs"`
	SampleBytes int64 `json:"sample_bytes"`
	// Queries is how many were replayed in each round; QueriesMade that they were made up, for want of a log.
	Queries     int  `json:"queries"`
	QueriesMade bool `json:"queries_made_up"`
	// QuotaBytes is what the days of retention are of.
	QuotaBytes int64 `json:"quota_bytes"`
}

func (r *run) report(now *measured, all []*measured) *Report {
	out := &Report{
		Rounds: len(r.rounds), Pairs: len(r.store.pairs), Bytes: r.store.closedBytes, QueriesMade: len(r.o.Queries) == 0,
		QuotaBytes: r.o.QuotaBytes, Queries: len(r.queries[0]),
	}
	if out.QuotaBytes == 0 {
		out.QuotaBytes = r.store.closedBytes + r.store.otherBytes
	}
	seen, values := map[string]bool{}, uint64(0)
	for _, pairs := range r.rounds {
		for i := range pairs {
			if !seen[pairs[i].Name] {
				seen[pairs[i].Name] = true
				out.SamplePairs, out.SampleBytes, values = out.SamplePairs+1, out.SampleBytes+pairs[i].Bytes, values+pairs[i].Values
			}
		}
	}
	out.Current = r.candidate(now, out.QuotaBytes)
	for _, m := range all {
		c := r.candidate(m, out.QuotaBytes)
		c.Codec, c.ExtentBytes = m.codec.String(), m.extentBytes
		out.Candidates = append(out.Candidates, c)
	}
	out.Recommended = advise(values, &out.Current, out.Candidates)
	return out
}

func (r *run) candidate(m *measured, quota int64) Candidate {
	var c Candidate
	before, after, values := int64(0), int64(0), uint64(0)
	for i := range m.rounds {
		f := &m.rounds[i]
		before, after, values = before+f.beforeBytes, after+f.bytes, values+f.values
	}
	c.BytesPerSample = float64(after) / float64(values)
	c.Ratio = bytesPerValue / c.BytesPerSample
	of := func(get func(f *figures) float64) (float64, Range) { return median(m.rounds, get) }
	_, c.Spread.Ratio = of(func(f *figures) float64 { return bytesPerValue * float64(f.values) / float64(f.bytes) })
	c.WriteCPU, c.Spread.WriteCPU = of(func(f *figures) float64 { return f.WriteCPU })
	c.WriteWall, c.Spread.WriteWall = of(func(f *figures) float64 { return f.WriteWall })
	c.QueryP50, c.Spread.QueryP50 = of(func(f *figures) float64 { return f.P50 })
	c.QueryP99, c.Spread.QueryP99 = of(func(f *figures) float64 { return f.P99 })
	c.QueryColdP50, c.Spread.QueryColdP50 = of(func(f *figures) float64 { return f.ColdP50 })
	c.QueryColdP99, c.Spread.QueryColdP99 = of(func(f *figures) float64 { return f.ColdP99 })
	projected := float64(r.store.closedBytes) * float64(after) / float64(before)
	c.ProjectedBytes = int64(projected)
	// What is not in closed pairs, such as the log and the summaries, stays as large as it is.
	if days := r.store.spanSeconds / 86400; days > 0 && projected > 0 {
		c.ProjectedRetentionDays = max(float64(quota-r.store.otherBytes), 0) / (projected / days)
	}
	return c
}

// median returns the median of a figure, and its range.
func median(rounds []figures, get func(f *figures) float64) (float64, Range) {
	list := make([]float64, len(rounds))
	for i := range rounds {
		list[i] = get(&rounds[i])
	}
	slices.Sort(list)
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2, Range{Least: list[0], Greatest: list[n-1]}
}

const (
	// leastSaving is what a candidate must save, of the size of what it is compared with, to be worth anything, and again for each time that it
	// takes twice the CPU.
	leastSaving = 0.03
	// leastSample is how many values must be tried for a recommendation.
	leastSample = 100_000
	// slowest is how much slower the slowest of cold queries may become.
	slowest = 2
)

// advise recommends something if enough values were tried.
func advise(values uint64, now *Candidate, all []Candidate) Recommended {
	if values < leastSample {
		return Recommended{Text: fmt.Sprintf("too little data for a recommendation: the closed file pairs of the sample have %d values, expected at least %d", values, leastSample)}
	}
	return recommend(now, all)
}

// recommend goes from the candidate that is the cheapest to write to the dearest, and changes its mind whenever one saves enough for
// what it costs and makes queries not much slower than what is there.
func recommend(now *Candidate, all []Candidate) Recommended {
	order := make([]*Candidate, len(all))
	for i := range all {
		order[i] = &all[i]
	}
	slices.SortStableFunc(order, func(a, b *Candidate) int { return cmp.Compare(a.WriteCPU, b.WriteCPU) })
	best, smallest := now, now
	for _, c := range order {
		if c.BytesPerSample < smallest.BytesPerSample {
			smallest = c
		}
		saves := 1 - c.BytesPerSample/best.BytesPerSample
		// What writing takes as it is was not measured: that of the cheapest stands for it.
		need, cpu := leastSaving, cmp.Or(best.WriteCPU, order[0].WriteCPU)
		if cpu > 0 {
			need *= 1 + max(math.Log2(c.WriteCPU/cpu), 0)
		}
		if saves >= need && c.Spread.QueryColdP99.Least <= slowest*now.Spread.QueryColdP99.Greatest {
			best = c
		}
	}
	if best == now {
		text := "leave it as it is: no candidate saves 3 % of the disk, and 3 % more for each doubling of the CPU that writing takes, without making the slowest cold queries twice as slow"
		if smallest != now {
			text += fmt.Sprintf("; the smallest, %s, saves %.1f %%", smallest.Name(), 100*(1-smallest.BytesPerSample/now.BytesPerSample))
		}
		return Recommended{Text: text}
	}
	return Recommended{Codec: best.Codec, ExtentBytes: best.ExtentBytes, Text: describe(now, order[0], best)}
}

// describe says in a sentence what a candidate does; cheapest is the one that is quickest to write.
func describe(now, cheapest, c *Candidate) string {
	parts := []string{fmt.Sprintf("%.0f %% less disk than now", 100*(1-c.BytesPerSample/now.BytesPerSample))}
	if c != cheapest && cheapest.WriteCPU > 0 {
		parts = append(parts, fmt.Sprintf("writing takes %.1fx the CPU of %s", c.WriteCPU/cheapest.WriteCPU, cheapest.Codec))
	}
	compare := func(what string, was, is float64, before, after Range) {
		if before.overlaps(after) || was <= 0 {
			parts = append(parts, what+" unchanged within noise")
			return
		}
		word := "slower"
		ratio := is / was
		if ratio < 1 {
			word, ratio = "quicker", 1/ratio
		}
		parts = append(parts, fmt.Sprintf("%s %.1fx %s", what, ratio, word))
	}
	compare("queries", now.QueryP50, c.QueryP50, now.Spread.QueryP50, c.Spread.QueryP50)
	compare("cold queries", now.QueryColdP50, c.QueryColdP50, now.Spread.QueryColdP50, c.Spread.QueryColdP50)
	return c.Name() + ": " + strings.Join(parts, ", ")
}

package page

import (
	"fmt"
	"slices"
	"sort"
	"testing"

	"tidemark/storage/dbengine/page/pagetest"
)

// traceColumn is one column of the recorded trace.
type traceColumn struct {
	float, dense bool
	v            []uint64
}

func (c *traceColumn) varies() bool { return slices.Min(c.v) != slices.Max(c.v) }

func (c *traceColumn) append(dst []byte) []byte {
	if c.dense && c.float {
		return AppendDenseFloats(dst, c.v)
	}
	if c.dense {
		return AppendDenseUints(dst, c.v)
	}
	if c.float {
		return AppendFloats(dst, c.v)
	}
	return AppendUints(dst, c.v)
}

func (c *traceColumn) decode(dst []uint64, b []byte) ([]uint64, error) {
	if c.float {
		return DecodeFloats(dst, b, len(c.v))
	}
	return DecodeUints(dst, b, len(c.v))
}

// readTrace returns the columns of the recorded trace.
func readTrace(t testing.TB) []traceColumn {
	t.Helper()
	columns, err := pagetest.Trace()
	if err != nil {
		t.Fatal(err)
	}
	trace := make([]traceColumn, len(columns))
	for i, c := range columns {
		trace[i] = traceColumn{float: c.Float, v: c.Bits}
	}
	return trace
}

// describe names the schemes of a column from the outside in.
func describe(b []byte) string {
	names := map[byte]string{
		67: "coded FOR", 68: "coded delta-FOR", 69: "coded delta", 70: "coded double",
		0: "raw", 1: "constant", 2: "linear", 3: "FOR", 4: "delta-FOR", 5: "delta", 6: "double", 7: "line",
		8: "dict", 9: "runs", 10: "slopes", 11: "unit", 12: "repeat", 16: "decimal", 17: "patched", 18: "ordered", 19: "split",
	}
	f := fields{rest: b[1:]}
	switch b[0] {
	case schemeRepeat:
		f.unsigned()
		f.signed()
		return "repeat " + describe(f.rest)
	case schemeUnit:
		f.unsigned()
		f.signed()
		return "unit " + describe(f.rest)
	case schemeSlopes:
		f.signed()
		return "slopes " + describe(f.rest)
	case schemeRuns:
		f.unsigned()
		first, second, _ := cut(f.rest)
		return fmt.Sprintf("runs(%s, %s)", describe(first), describe(second))
	case schemeDict:
		_, second, _ := cut(b[2:])
		return "dict " + describe(second)
	case schemeDecimal:
		return "decimal " + describe(b[2:])
	case schemeOrdered:
		return "ordered " + describe(b[1:])
	}
	return names[b[0]]
}

func TestTrace_size(t *testing.T) {
	trace := readTrace(t)
	checkTrace(t, trace, 0.070, 0.615)
	for i := range trace {
		trace[i].dense = true
	}
	checkTrace(t, trace, 0.065, 0.565)
}

// checkTrace encodes and decodes all columns and checks the bytes a value, over all and over those that vary.
func checkTrace(t *testing.T, trace []traceColumn, wantAll, wantVarying float64) {
	t.Helper()
	all, varying, count := 0, 0, 0
	wins := map[string]int{}
	sizes := map[string]int{}
	for _, c := range trace {
		b := c.append(nil)
		got, err := c.decode(nil, b)
		if err != nil || !slices.Equal(got, c.v) {
			t.Fatal("a column did not come back", err)
		}
		all += len(b)
		if c.varies() {
			varying += len(b)
			count++
			wins[describe(b)]++
			sizes[describe(b)] += len(b)
		}
	}
	perAll, perVarying := float64(all)/float64(len(trace))/1024, float64(varying)/float64(count)/1024
	t.Logf("dense %v: %.4f B a value over all columns, %.4f over the %d that vary", trace[0].dense, perAll, perVarying, count)
	if perAll > wantAll || perVarying > wantVarying {
		t.Errorf("%.4f and %.4f B a value; expected at most %.3f and %.3f", perAll, perVarying, wantAll, wantVarying)
	}
	var names []string
	for name := range wins {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool { return sizes[names[i]] > sizes[names[j]] })
	for _, name := range names {
		t.Logf("%4d columns, %7d B: %s", wins[name], sizes[name], name)
	}
}

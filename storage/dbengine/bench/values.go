package bench

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"tidemark/model"
)

// Kinds are the kinds of generated values.
var Kinds = []string{"netdata", "gauge", "counter", "constant"}

const (
	// maxTraceColumns and maxTraceLines bound a trace file.
	maxTraceColumns = 1 << 16
	maxTraceLines   = 1 << 16
	maxTraceValues  = 1 << 25
)

// source makes values.
type source interface {
	valueType(metric int) model.ValueType
	// open returns the values of one writer.
	open(seed uint64) values
}

// values adds the values of metrics [from, to) at an instant, Unix seconds, to a batch. Instants rise by one.
type values interface {
	add(b *model.Batch, from, to int, at int64)
}

func newSource(o *Options) (source, error) {
	if o.Trace != "" {
		o.Values = "trace"
		return readTrace(o.Trace)
	}
	for _, kind := range Kinds {
		if kind == o.Values {
			return generated{kind: kind, metrics: o.Metrics}, nil
		}
	}
	return nil, fmt.Errorf("values: %q, expected %s", o.Values, strings.Join(Kinds, ", "))
}

type generated struct {
	kind    string
	metrics int
}

func (g generated) valueType(int) model.ValueType {
	if g.kind == "counter" {
		return model.Uint
	}
	return model.Float
}

func (g generated) open(seed uint64) values {
	random := random(seed*2 + 0x9E3779B97F4A7C15)
	switch g.kind {
	case "gauge":
		v := gauge{random: &random, cents: make([]int64, g.metrics)}
		for i := range v.cents {
			v.cents[i] = 5000 + int64(random.below(5000))
		}
		return v
	case "counter":
		return counter{random: &random, counts: make([]uint64, g.metrics)}
	case "constant":
		return constant{}
	}
	return sawtooth{}
}

// random is a small generator (xorshift, G. Marsaglia 2003), which costs little beside what is measured.
type random uint64

// below returns a number from 0 to n−1.
func (r *random) below(n uint64) uint64 {
	x := uint64(*r)
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*r = random(x)
	return (x >> 32) * n >> 32
}

// sawtooth has the shape of Netdata's stress generator: whole numbers below 1,024, with a slope for each metric.
type sawtooth struct{}

func (sawtooth) add(b *model.Batch, from, to int, at int64) {
	for i := from; i < to; i++ {
		slope := int64(i/ChartMetrics + i%ChartMetrics + 2)
		b.Append(model.ItemID(i+1), at*second, model.Float, math.Float64bits(float64(at*slope%1024)))
	}
}

// gauge walks at random in steps of up to 0.50, with two decimals.
type gauge struct {
	random *random
	cents  []int64
}

func (v gauge) add(b *model.Batch, from, to int, at int64) {
	for i := from; i < to; i++ {
		v.cents[i] += int64(v.random.below(101)) - 50
		b.Append(model.ItemID(i+1), at*second, model.Float, math.Float64bits(float64(v.cents[i])/100))
	}
}

// counter grows by 800 to 1,200.
type counter struct {
	random *random
	counts []uint64
}

func (v counter) add(b *model.Batch, from, to int, at int64) {
	for i := from; i < to; i++ {
		v.counts[i] += 800 + v.random.below(401)
		b.Append(model.ItemID(i+1), at*second, model.Uint, v.counts[i])
	}
}

// constant never changes.
type constant struct{}

func (constant) add(b *model.Batch, from, to int, at int64) {
	for i := from; i < to; i++ {
		b.Append(model.ItemID(i+1), at*second, model.Float, math.Float64bits(float64(i)))
	}
}

// trace repeats recorded values; metrics beyond its columns begin again at the first.
type trace struct {
	float []bool
	// rows are the instants, one after the other.
	rows [][]uint64
}

func (t *trace) valueType(metric int) model.ValueType {
	if t.float[metric%len(t.float)] {
		return model.Float
	}
	return model.Uint
}

func (t *trace) open(uint64) values { return t }

func (t *trace) add(b *model.Batch, from, to int, at int64) {
	row := t.rows[(at-start)%int64(len(t.rows))]
	for i := from; i < to; i++ {
		b.Append(model.ItemID(i+1), at*second, t.valueType(i), row[i%len(row)])
	}
}

// readTrace reads a trace: a line a second, the time and then the columns, numbers divided by blanks; the file may be
// compressed with gzip. A column is unsigned integers if all its values are, else floats.
func readTrace(name string) (*trace, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := io.Reader(f)
	if strings.HasSuffix(name, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	var words [][]string
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || len(fields) > maxTraceColumns || len(words) > 0 && len(fields) != len(words[0]) {
			return nil, fmt.Errorf("%s: line %d has %d fields, expected as many as the first, 2 to %d", name, len(words)+1, len(fields), maxTraceColumns)
		}
		if words = append(words, fields); len(words) > maxTraceLines || len(words)*len(fields) > maxTraceValues {
			return nil, fmt.Errorf("%s: more than %d lines or %d values", name, maxTraceLines, maxTraceValues)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("%s: no lines", name)
	}
	return parseTrace(name, words)
}

func parseTrace(name string, words [][]string) (*trace, error) {
	columns := len(words[0]) - 1
	t := &trace{float: make([]bool, columns)}
	for k := range columns {
		for i := range words {
			if _, err := strconv.ParseUint(words[i][k+1], 10, 64); err != nil {
				t.float[k] = true
				break
			}
		}
	}
	for i := range words {
		row := make([]uint64, columns)
		for k := range columns {
			var err error
			word := words[i][k+1]
			if t.float[k] {
				var x float64
				x, err = strconv.ParseFloat(word, 64)
				row[k] = math.Float64bits(x)
			} else {
				row[k], err = strconv.ParseUint(word, 10, 64)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: line %d, column %d: %w", name, i+1, k+1, err)
			}
		}
		t.rows = append(t.rows, row)
	}
	return t, nil
}

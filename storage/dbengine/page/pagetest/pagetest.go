// Package pagetest holds recorded data for tests and benchmarks of the engine.
package pagetest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Column is one series of the trace, one value a second.
type Column struct {
	// Float says that Bits are floats; else they are unsigned integers.
	Float bool
	Bits  []uint64
}

const (
	traceColumns = 3889
	traceValues  = 1024
)

//go:embed testdata/proc-1024x3889.txt.gz
var trace []byte

// Trace returns 1,024 seconds of the 3,889 numbers under /proc of a small busy Linux machine; 431 of them vary.
//
// The file has one line a column: u for counters and gauges, the first value and then the differences; f for decimals.
// An empty field is no change, *N that many of them.
func Trace() ([]Column, error) {
	z, err := gzip.NewReader(bytes.NewReader(trace))
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	columns := make([]Column, 0, traceColumns)
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		c, err := parse(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("trace: column %d: %w", len(columns), err)
		}
		columns = append(columns, c)
	}
	if lines.Err() != nil || len(columns) != traceColumns {
		return nil, fmt.Errorf("trace: %d columns, expected %d: %w", len(columns), traceColumns, lines.Err())
	}
	return columns, nil
}

// parse reads one line of the trace.
func parse(line string) (Column, error) {
	c := Column{Float: strings.HasPrefix(line, "f"), Bits: make([]uint64, 0, traceValues)}
	last := uint64(0)
	for _, field := range strings.Split(line[1:], ",") {
		repeat := 1
		var err error
		switch {
		case field == "":
		case field[0] == '*':
			repeat, err = strconv.Atoi(field[1:])
		case c.Float:
			var x float64
			x, err = strconv.ParseFloat(field, 64)
			last = math.Float64bits(x)
		default:
			digits, fall := strings.CutPrefix(field, "-")
			var x uint64
			if x, err = strconv.ParseUint(digits, 10, 64); fall {
				x = -x
			}
			last += x
		}
		if err != nil {
			return c, err
		}
		for range repeat {
			c.Bits = append(c.Bits, last)
		}
	}
	if len(c.Bits) != traceValues {
		return c, fmt.Errorf("%d values, expected %d", len(c.Bits), traceValues)
	}
	return c, nil
}

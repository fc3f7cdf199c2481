package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// Bounds of flags that need none but a sensible one: a year in seconds, and rows or values a second.
const (
	mostSeconds = 366 * 24 * 3600
	mostRate    = 1_000_000_000
)

// ranged is the value of a flag that is a number within bounds; NaN is in none.
type ranged[T int | int64 | float64] struct {
	to        *T
	low, high T
	parse     func(string) (T, error)
}

// String implements pflag.Value.
func (r *ranged[T]) String() string {
	if r.to == nil {
		return ""
	}
	return fmt.Sprint(*r.to)
}

// Set implements pflag.Value.
func (r *ranged[T]) Set(text string) error {
	v, err := r.parse(text)
	if err != nil || !(v >= r.low && v <= r.high) {
		return fmt.Errorf("expected a number from %s to %s", plainNumber(r.low), plainNumber(r.high))
	}
	*r.to = v
	return nil
}

// Type implements pflag.Value; it is what the help shows.
func (r *ranged[T]) Type() string {
	if _, ok := any(r.low).(float64); ok {
		return "float"
	}
	return "int"
}

// plainNumber writes a number without an exponent.
func plainNumber[T int | int64 | float64](v T) string {
	return strconv.FormatFloat(float64(v), 'f', -1, 64)
}

// floatFlag adds a flag of a number from low to high; *to is its default.
func floatFlag(f *pflag.FlagSet, to *float64, name string, low, high float64, usage string) {
	parse := func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
	f.Var(&ranged[float64]{to, low, high, parse}, name, usage)
}

// intFlag adds a flag of a whole number from low to high; *to is its default.
func intFlag(f *pflag.FlagSet, to *int, name string, low, high int, usage string) {
	f.Var(&ranged[int]{to, low, high, strconv.Atoi}, name, usage)
}

// int64Flag is intFlag for an int64.
func int64Flag(f *pflag.FlagSet, to *int64, name string, low, high int64, usage string) {
	parse := func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }
	f.Var(&ranged[int64]{to, low, high, parse}, name, usage)
}

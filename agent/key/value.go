package key

import (
	"errors"
	"math"
	"strconv"

	"tidemark/model"
)

// Value is what a check gave: a float, an unsigned integer, or text.
type Value struct {
	// Type is model.Float, model.Uint or model.Text.
	Type model.ValueType
	// Bits is math.Float64bits or the integer.
	Bits uint64
	Text string
}

// Float makes a float value.
func Float(v float64) Value { return Value{Type: model.Float, Bits: math.Float64bits(v)} }

// Uint makes an unsigned value.
func Uint(v uint64) Value { return Value{Type: model.Uint, Bits: v} }

// Text makes a text value.
func Text(s string) Value { return Value{Type: model.Text, Text: s} }

// percent is part of whole in per cent, rounded to four decimals: more is noise, and short decimals are kept small.
func percent(part, whole float64) Value { return Float(math.Round(part/whole*1e6) / 1e4) }

// Append appends the value as it travels on the wire: floats in the shortest form that reads back to the same bits.
func (v Value) Append(dst []byte) []byte {
	switch v.Type {
	case model.Float:
		return strconv.AppendFloat(dst, math.Float64frombits(v.Bits), 'g', -1, 64)
	case model.Uint:
		return strconv.AppendUint(dst, v.Bits, 10)
	}
	return append(dst, v.Text...)
}

// String returns the value as text.
func (v Value) String() string { return string(v.Append(nil)) }

// The errors of keys. Their texts are those that Zabbix users find in item states, hence capital and full stop.
//
//nolint:staticcheck // See above.
var (
	ErrUnsupportedKey = errors.New("Unsupported item key.")
	ErrTooManyParams  = errors.New("Too many parameters.")

	errFirst  = errors.New("Invalid first parameter.")
	errSecond = errors.New("Invalid second parameter.")
	errThird  = errors.New("Invalid third parameter.")
	errFourth = errors.New("Invalid fourth parameter.")
	errFifth  = errors.New("Invalid fifth parameter.")

	errNoDevice    = errors.New("Cannot find this device.")
	errNoInterface = errors.New("Cannot find information for this network interface.")
	errNoSwap      = errors.New("Cannot be calculated because swap file size is 0.")
	errNoTotal     = errors.New("Cannot be calculated because the total is 0.")
	errNoCPU       = errors.New("Cannot obtain CPU information: no such processor.")
)

// ErrNotYet means that a value needs an earlier tick to compare with: nothing is sent, the next tick has it.
var ErrNotYet = errors.New("no value yet: the first one comes with the next tick")

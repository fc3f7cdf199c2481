package key

import (
	"errors"
	"fmt"
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
		f := math.Float64frombits(v.Bits)
		if size := math.Abs(f); size >= 1e-5 && size < 1e15 {
			return strconv.AppendFloat(dst, f, 'f', -1, 64)
		}
		return strconv.AppendFloat(dst, f, 'g', -1, 64)
	case model.Uint:
		return strconv.AppendUint(dst, v.Bits, 10)
	}
	return append(dst, v.Text...)
}

// String returns the value as text.
func (v Value) String() string { return string(v.Append(nil)) }

// reason is why a key cannot be measured. Its text becomes an item's state, where Zabbix users look for sentences.
type reason string

// Error returns the sentence.
func (r reason) Error() string { return string(r) }

// reasonf is a reason with parts, which may wrap another error.
func reasonf(format string, parts ...any) error { return fmt.Errorf(format, parts...) }

// The errors of keys. Their texts are those that Zabbix users find in item states, hence capital and full stop.
//

var (
	// ErrUnsupportedKey is returned for a key that the agent does not know.
	ErrUnsupportedKey = reason("Unsupported item key.")
	// ErrTooManyParams is returned for a key with more parameters than it has.
	ErrTooManyParams = reason("Too many parameters.")

	errFirst  = reason("Invalid first parameter.")
	errSecond = reason("Invalid second parameter.")
	errThird  = reason("Invalid third parameter.")
	errFourth = reason("Invalid fourth parameter.")
	errFifth  = reason("Invalid fifth parameter.")

	errNoParams        = reason("Item does not allow parameters.")
	errInterfaceEmpty  = reason("Network interface name cannot be empty.")
	errFilesystemEmpty = reason("Filesystem name cannot be empty.")

	errNoDevice    = reason("Cannot find this device.")
	errNoDisk      = reason("Cannot obtain disk information.")
	errNoInterface = reason("Cannot find information for this network interface in /proc/net/dev.")
	errNoTotal     = reason("Cannot be calculated because the total is 0.")
	errNoCPU       = reason("Cannot obtain CPU information: no such processor.")
)

// ErrNotYet means that a value needs an earlier tick to compare with: nothing is sent, the next tick has it.
var ErrNotYet = errors.New("no value yet: the first one comes with the next tick")

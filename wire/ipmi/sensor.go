package ipmi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
)

// Record is a sensor as the controller describes it.
type Record struct {
	// Number is the sensor's number at the owner's logical unit.
	Owner, Unit, Number byte
	// Entity and Instance say which part of the machine it is of.
	Entity, Instance byte
	// Type is what is measured, Reading how: 1 are values with thresholds, all else are states.
	Type, Reading byte
	// ID is the sensor's name.
	ID string
	// Units are of values; empty for states.
	Units string

	// full is set for records that have a formula and thresholds.
	full          bool
	format        byte
	linearization byte
	m, b          int
	bExp, rExp    int
}

// Threshold reports whether the sensor has values, not only states.
func (r *Record) Threshold() bool { return r.Reading == 1 }

// The types of records that are sensors (43.1, 43.2).
const (
	recordFull    = 0x01
	recordCompact = 0x02
)

const (
	// maxRecords bounds the records of a controller, 65,535 in the protocol.
	maxRecords = 4096
	// chunk is how much of a record is read at once; every controller gives so much.
	chunk = 16
)

// DecodeRecord reads a sensor data record; nil when it is of no sensor.
func DecodeRecord(in []byte) (*Record, error) {
	if len(in) < 5 {
		return nil, errors.New("a sensor data record is cut")
	}
	kind := in[3]
	name := 31 // where the type and length of the name is
	switch kind {
	case recordFull:
		name = 47
	case recordCompact:
	default:
		return nil, nil
	}
	if len(in) < 5+int(in[4]) {
		return nil, errors.New("a sensor data record is cut")
	}
	in = in[:5+int(in[4])]
	if len(in) <= name {
		return nil, errors.New("a sensor data record is too short for its type")
	}
	r := &Record{
		Owner: in[5], Unit: in[6] & 3, Number: in[7], Entity: in[8], Instance: in[9] & 0x7f, Type: in[12], Reading: in[13] & 0x7f,
		full: kind == recordFull, format: in[20] >> 6, ID: idString(in[name], in[name+1:]),
	}
	if r.Threshold() {
		r.Units = units(in[20], in[21], in[22])
	}
	if r.full {
		r.linearization = in[23] & 0x7f
		r.m, r.b = signed(uint16(in[24])|uint16(in[25]&0xc0)<<2, 10), signed(uint16(in[26])|uint16(in[27]&0xc0)<<2, 10)
		r.bExp, r.rExp = signed(uint16(in[29]&0x0f), 4), signed(uint16(in[29]>>4), 4)
	}
	return r, nil
}

// signed is a number in two's complement with so many bits.
func signed(v uint16, bits int) int {
	if v&(1<<(bits-1)) != 0 {
		return int(v) - 1<<bits
	}
	return int(v)
}

// idString reads a name (43.15): 8-bit text, 6-bit text or BCD plus.
func idString(kind byte, in []byte) string {
	in = in[:min(len(in), int(kind&0x1f))]
	var text []byte
	switch kind >> 6 {
	case 1:
		for _, b := range in {
			text = append(text, "0123456789 -.:,_"[b>>4], "0123456789 -.:,_"[b&15])
		}
	case 2:
		var bits, have uint
		for _, b := range in {
			bits |= uint(b) << have
			for have += 8; have >= 6; have -= 6 {
				text = append(text, byte(bits&0x3f)+0x20)
				bits >>= 6
			}
		}
	default:
		text = in
	}
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(text), "?"))
	return strings.TrimSpace(clean)
}

// Value is a raw reading in the sensor's units (36.3). It is false for one that has no value.
func (r *Record) Value(raw byte) (float64, bool) {
	if !r.full || r.format == 3 {
		return 0, false
	}
	x := float64(raw)
	switch r.format {
	case 1: // one's complement
		if raw&0x80 != 0 {
			x = -float64(^raw)
		}
	case 2:
		x = float64(int8(raw))
	}
	y := (float64(r.m)*x + float64(r.b)*math.Pow10(r.bExp)) * math.Pow10(r.rExp)
	functions := []func(float64) float64{
		func(y float64) float64 { return y }, math.Log, math.Log10, math.Log2, math.Exp, func(y float64) float64 { return math.Pow(10, y) }, math.Exp2,
		func(y float64) float64 { return 1 / y }, func(y float64) float64 { return y * y }, func(y float64) float64 { return y * y * y }, math.Sqrt, math.Cbrt,
	}
	if int(r.linearization) >= len(functions) {
		return 0, false // a formula of its own for each reading
	}
	y = functions[r.linearization](y)
	return y, !math.IsNaN(y) && !math.IsInf(y, 0)
}

// Records reads the descriptions of all sensors.
func (s *Session) Records(ctx context.Context) ([]*Record, error) {
	reservation, err := s.reserve(ctx)
	if err != nil {
		return nil, err
	}
	var list []*Record
	id, retries := uint16(0), 0
	for range maxRecords {
		raw, next, err := s.record(ctx, reservation, id)
		var code *CodeError
		if errors.As(err, &code) && code.Code == 0xc5 && retries < 5 {
			// Somebody else reads too; what was read stays good.
			retries++
			if reservation, err = s.reserve(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if code != nil && code.Code == 0xcb && len(list) == 0 && id == 0 {
			return nil, nil // there is no record at all
		}
		if err != nil {
			return nil, err
		}
		r, err := DecodeRecord(raw)
		if err != nil {
			return nil, err
		}
		if r != nil {
			list = append(list, r)
		}
		if next == 0xffff || next == id {
			return list, nil
		}
		id = next
	}
	return nil, fmt.Errorf("the controller has more than %d records", maxRecords)
}

func (s *Session) reserve(ctx context.Context) ([]byte, error) {
	reply, err := s.Command(ctx, "reserve SDR repository", 0, 0x0a, 0x22)
	if err != nil {
		return nil, err
	}
	if len(reply) < 2 {
		return nil, errPacket
	}
	return reply[:2], nil
}

// record reads a record in pieces; next is the record behind it.
func (s *Session) record(ctx context.Context, reservation []byte, id uint16) (raw []byte, next uint16, err error) {
	size := 5 // the header, which says how much there is
	for len(raw) < size {
		n := min(chunk, size-len(raw))
		request := append(append([]byte{}, reservation...), byte(id), byte(id>>8), byte(len(raw)), byte(n))
		reply, err := s.Command(ctx, "get SDR", 0, 0x0a, 0x23, request...)
		if err != nil {
			return nil, 0, err
		}
		if len(reply) < 3 || len(reply)-2 > n {
			return nil, 0, errPacket
		}
		next = binary.LittleEndian.Uint16(reply)
		if raw = append(raw, reply[2:]...); len(raw) >= 5 {
			size = min(5+int(raw[4]), 255)
		}
	}
	return raw, next, nil
}

// State is what a sensor reads now.
type State struct {
	// Absent is set when there is no reading: the part is not there, or scanning is off.
	Absent bool
	// Value is what a sensor with thresholds measures; HasValue says that it does.
	Value    float64
	HasValue bool
	// Bits are the states that are on, 15 at most; of a sensor with thresholds those that are passed.
	Bits uint16
}

// OwnerError says that a sensor is not the controller's own.
type OwnerError struct{ Owner byte }

// Error names the owner.
func (e *OwnerError) Error() string {
	return fmt.Sprintf("the sensor belongs to the controller at address 0x%02x, to which requests are not passed on", e.Owner)
}

// Read reads a sensor (35.14).
func (s *Session) Read(ctx context.Context, r *Record) (State, error) {
	if r.Owner != controller {
		return State{}, &OwnerError{r.Owner}
	}
	reply, err := s.Command(ctx, "get sensor reading", r.Unit, 0x04, 0x2d, r.Number)
	var code *CodeError
	if errors.As(err, &code) && code.Code == 0xcb {
		return State{Absent: true}, nil
	}
	if err != nil {
		return State{}, err
	}
	if len(reply) < 2 {
		return State{}, errPacket
	}
	out := State{Absent: reply[1]&0x40 == 0 || reply[1]&0x20 != 0}
	if len(reply) > 2 {
		out.Bits = uint16(reply[2])
		if r.Threshold() {
			out.Bits &= 0x3f
		} else if len(reply) > 3 {
			out.Bits |= uint16(reply[3]&0x7f) << 8
		}
	}
	if r.Threshold() {
		out.Value, out.HasValue = r.Value(reply[0])
	}
	return out, nil
}

// The thresholds in the order of the protocol, which is that of the bits of a State.
const (
	LowerNonCritical = iota
	LowerCritical
	LowerNonRecoverable
	UpperNonCritical
	UpperCritical
	UpperNonRecoverable
	thresholdCount
)

// Thresholds reads those of a sensor (35.9); nil for one that it does not have. A sensor without any has none.
func (s *Session) Thresholds(ctx context.Context, r *Record) ([thresholdCount]*float64, error) {
	var out [thresholdCount]*float64
	if !r.Threshold() || !r.full || r.Owner != controller {
		return out, nil
	}
	reply, err := s.Command(ctx, "get sensor thresholds", r.Unit, 0x04, 0x27, r.Number)
	var code *CodeError
	if errors.As(err, &code) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if len(reply) < 1+thresholdCount {
		return out, errPacket
	}
	for i := range out {
		if v, ok := r.Value(reply[1+i]); ok && reply[0]&(1<<i) != 0 {
			out[i] = &v
		}
	}
	return out, nil
}

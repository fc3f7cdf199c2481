package expr

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strconv"
	"time"
	"unicode/utf8"
)

// maxText bounds what one string function may make.
const maxText = 64 << 10

// call evaluates a function of expressions. An unknown argument makes the result unknown.
func (m *Machine) call(k Kind, args []operand) operand {
	for i := range args {
		if args[i].kind == isUnknown {
			return args[i]
		}
	}
	if len(args) > 0 && (args[0].kind == isList || k == kindHistogramQuantile) {
		return m.callList(k, args)
	}
	for i := range args {
		if args[i].kind == isList {
			m.fail(FailArgument, -1)
			return operand{}
		}
	}
	switch {
	case k >= kindCount && k < kindDate:
		// They take lists only.
		m.fail(FailArgument, -1)
		return operand{}
	case k >= kindASCII:
		return m.callText(k, args)
	case k == kindIn:
		return operand{number: truth(m.in(args))}
	case k >= kindDate && k <= kindTime:
		return operand{number: m.clock(k)}
	case k >= kindBitAnd && k <= kindBitRight:
		return unsigned(m.bits(k, args))
	case k < kindDate:
		return operand{number: m.several(k, args)}
	}
	var v [3]float64
	for i := range min(len(args), len(v)) {
		v[i] = m.numeric(&args[i])
	}
	if k == kindBetween {
		return operand{number: truth(v[0] >= v[1]-epsilon && v[0] <= v[2]+epsilon)}
	}
	result := mathematics(k, v[0], v[1])
	if math.IsNaN(result) || math.IsInf(result, 0) {
		m.fail(FailArgument, -1)
	}
	return operand{number: result}
}

// several is avg, min, max or sum of the arguments.
func (m *Machine) several(k Kind, args []operand) float64 {
	result := m.numeric(&args[0])
	for i := 1; i < len(args); i++ {
		v := m.numeric(&args[i])
		switch k {
		case kindMin:
			result = min(result, v)
		case kindMax:
			result = max(result, v)
		default:
			result += v
		}
	}
	if k == kindAvg {
		result /= float64(len(args))
	}
	return result
}

// in reports whether the first argument equals one of the others, as numbers if all are numbers, else as text.
func (m *Machine) in(args []operand) bool {
	first := &args[0]
	wanted, firstIsNumber := asNumber(first)
	for i := 1; i < len(args); i++ {
		v, ok := asNumber(&args[i])
		if ok && firstIsNumber {
			if equal(v, wanted) {
				return true
			}
			continue
		}
		if bytes.Equal(m.asText(first), m.asText(&args[i])) {
			return true
		}
	}
	return false
}

func asNumber(o *operand) (float64, bool) {
	if o.kind == isNumber {
		return o.number, true
	}
	return parseNumber(string(o.text))
}

// asText returns an operand as text; a number as it is written shortest.
func (m *Machine) asText(o *operand) []byte {
	if o.kind == isText {
		return o.text
	}
	start := len(m.texts)
	m.texts = strconv.AppendFloat(m.texts, o.number, 'g', -1, 64)
	return m.texts[start:len(m.texts):len(m.texts)]
}

// clock is a date or time function in the machine's zone.
func (m *Machine) clock(k Kind) float64 {
	if k == kindNow {
		return float64(floorSecond(m.moment.At) / int64(time.Second))
	}
	t := time.Unix(0, m.moment.At).In(m.Zone)
	switch k {
	case kindDate:
		year, month, day := t.Date()
		return float64(year*10000 + int(month)*100 + day)
	case kindDayOfMonth:
		return float64(t.Day())
	case kindDayOfWeek:
		return float64((int(t.Weekday())+6)%7 + 1)
	}
	hour, minute, second := t.Clock()
	return float64(hour*10000 + minute*100 + second)
}

// bits is a function of unsigned 64-bit integers; anything else as argument ends the evaluation.
func (m *Machine) bits(k Kind, args []operand) uint64 {
	var v [2]uint64
	for i := range args {
		if args[i].whole != 0 {
			v[i] = args[i].whole
			continue
		}
		f := m.numeric(&args[i])
		if f < 0 || f >= 1<<64 || f != math.Trunc(f) {
			m.fail(FailArgument, -1)
			return 0
		}
		v[i] = uint64(f)
	}
	switch k {
	case kindBitAnd:
		return v[0] & v[1]
	case kindBitOr:
		return v[0] | v[1]
	case kindBitXor:
		return v[0] ^ v[1]
	case kindBitNot:
		return ^v[0]
	case kindBitLeft:
		return v[0] << min(v[1], 64)
	}
	return v[0] >> min(v[1], 64)
}

// mathematics returns NaN or an infinity where a function is not defined.
func mathematics(k Kind, a, b float64) float64 {
	switch k {
	case kindAbs:
		return math.Abs(a)
	case kindAcos:
		return math.Acos(a)
	case kindAsin:
		return math.Asin(a)
	case kindAtan:
		return math.Atan(a)
	case kindAtan2:
		return math.Atan2(a, b)
	case kindCbrt:
		return math.Cbrt(a)
	case kindCeil:
		return math.Ceil(a)
	case kindCos:
		return math.Cos(a)
	case kindCosh:
		return math.Cosh(a)
	case kindCot:
		return 1 / math.Tan(a)
	case kindDegrees:
		return a * 180 / math.Pi
	case kindE:
		return math.E
	case kindExp:
		return math.Exp(a)
	case kindExpm1:
		return math.Expm1(a)
	case kindFloor:
		return math.Floor(a)
	case kindLog:
		return math.Log(a)
	case kindLog10:
		return math.Log10(a)
	case kindMod:
		return math.Mod(a, b)
	case kindPi:
		return math.Pi
	}
	return moreMathematics(k, a, b)
}

func moreMathematics(k Kind, a, b float64) float64 {
	switch k {
	case kindPower:
		return math.Pow(a, b)
	case kindRadians:
		return a * math.Pi / 180
	case kindRand:
		return float64(rand.Int32())
	case kindRound:
		scale := math.Pow(10, math.Trunc(b))
		return math.Round(a*scale) / scale
	case kindSignum:
		switch {
		case a > 0:
			return 1
		case a < 0:
			return -1
		}
		return 0
	case kindSin:
		return math.Sin(a)
	case kindSinh:
		return math.Sinh(a)
	case kindSqrt:
		return math.Sqrt(a)
	case kindTan:
		return math.Tan(a)
	case kindTruncate:
		scale := math.Pow(10, math.Trunc(b))
		return math.Trunc(a*scale) / scale
	}
	return math.NaN()
}

// callText evaluates a string function.
func (m *Machine) callText(k Kind, args []operand) operand {
	if k == kindChar {
		return m.char(&args[0])
	}
	text := m.asText(&args[0])
	switch k {
	case kindASCII:
		if len(text) == 0 {
			m.fail(FailArgument, -1)
			return operand{}
		}
		return operand{number: float64(text[0])}
	case kindBitLength:
		return operand{number: float64(8 * len(text))}
	case kindByteLength:
		return operand{number: float64(len(text))}
	case kindLength:
		return operand{number: float64(utf8.RuneCount(text))}
	}
	result := m.edit(k, text, args)
	if len(result) > maxText {
		m.fail(FailArgument, -1)
		return operand{}
	}
	return operand{kind: isText, text: result}
}

func (m *Machine) char(o *operand) operand {
	v := m.numeric(o)
	if v < 0 || v > 255 || v != math.Trunc(v) {
		m.fail(FailArgument, -1)
		return operand{}
	}
	return operand{kind: isText, text: m.keep(string(rune(v)))}
}

// edit evaluates a string function whose result is text.
func (m *Machine) edit(k Kind, text []byte, args []operand) []byte {
	switch k {
	case kindConcat:
		parts := make([][]byte, 0, 8)
		for i := range args {
			parts = append(parts, m.asText(&args[i]))
		}
		start := len(m.texts)
		for _, part := range parts {
			m.texts = append(m.texts, part...)
		}
		return m.texts[start:len(m.texts):len(m.texts)]
	case kindLtrim, kindRtrim, kindTrim:
		cut := " \t\r\n"
		if len(args) > 1 {
			cut = string(m.asText(&args[1]))
		}
		switch k {
		case kindLtrim:
			return bytes.TrimLeft(text, cut)
		case kindRtrim:
			return bytes.TrimRight(text, cut)
		}
		return bytes.Trim(text, cut)
	case kindReplace:
		from, to := m.asText(&args[1]), m.asText(&args[2])
		if len(from) == 0 || bytes.Count(text, from)*len(to) > maxText {
			m.fail(FailArgument, -1)
			return nil
		}
		return bytes.ReplaceAll(text, from, to)
	}
	return m.cut(k, text, args)
}

// cut evaluates the string functions that count characters.
func (m *Machine) cut(k Kind, text []byte, args []operand) []byte {
	runes := []rune(string(text))
	a, ok := m.size(&args[1])
	if !ok {
		return nil
	}
	switch k {
	case kindLeft:
		return []byte(string(runes[:min(a, len(runes))]))
	case kindRight:
		return []byte(string(runes[len(runes)-min(a, len(runes)):]))
	case kindRepeat:
		if a*len(text) > maxText {
			m.fail(FailArgument, -1)
			return nil
		}
		return bytes.Repeat(text, a)
	}
	b, ok := m.size(&args[2])
	if !ok || a < 1 || a > len(runes)+1 {
		m.fail(FailArgument, -1)
		return nil
	}
	end := min(a-1+b, len(runes))
	if k == kindMid {
		return []byte(string(runes[a-1 : end]))
	}
	return []byte(string(runes[:a-1]) + string(m.asText(&args[3])) + string(runes[end:]))
}

// size reads a count of characters.
func (m *Machine) size(o *operand) (int, bool) {
	v := m.numeric(o)
	if v < 0 || v > maxText || v != math.Trunc(v) {
		m.fail(FailArgument, -1)
		return 0, false
	}
	return int(v), true
}

package preproc

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"tidemark/model"
)

// maxCharacters bounds a Character value, as Zabbix does.
const maxCharacters = 255

// convertRow gives row i the type want, or makes it Unsupported with the reason.
func convertRow(b *model.Batch, i int, want model.ValueType) {
	got := b.Types[i]
	switch {
	case !got.InArena() && want.Numeric():
		convertNumber(b, i, want)
		return
	case !got.InArena():
		text := formatNumber(got, b.Bits[i])
		setText(b, i, want, text)
		return
	}
	text := b.Bytes(i)
	if got == model.LogEntry {
		line, err := model.LogText(text)
		if err != nil {
			setUnsupported(b, i, err.Error())
			return
		}
		text = line
	}
	switch want {
	case model.Uint:
		v, ok := ParseUint(text)
		if !ok {
			setUnsupported(b, i, notSuitable(text, want))
			return
		}
		b.Types[i], b.Bits[i] = want, v
	case model.Float:
		v, ok := ParseFloat(text)
		if !ok {
			setUnsupported(b, i, notSuitable(text, want))
			return
		}
		b.Types[i], b.Bits[i] = want, math.Float64bits(v)
	default:
		keepText(b, i, want, text)
	}
}

// convertNumber changes a numeric row between Float and Uint.
func convertNumber(b *model.Batch, i int, want model.ValueType) {
	if want == model.Float {
		b.Bits[i] = math.Float64bits(float64(b.Bits[i]))
		b.Types[i] = want
		return
	}
	f := math.Float64frombits(b.Bits[i])
	u, ok := floatToUint(f)
	if !ok {
		setUnsupported(b, i, notSuitable(strconv.AppendFloat(nil, f, 'g', -1, 64), want))
		return
	}
	b.Bits[i], b.Types[i] = u, want
}

// keepText makes row i, whose payload is text in the arena already, a value of type want without copying when the text
// is within the limits.
func keepText(b *model.Batch, i int, want model.ValueType, text []byte) {
	if want == model.Binary {
		b.Types[i] = want
		return
	}
	if want == model.LogEntry || !utf8.Valid(text) || len(text) > model.MaxTextBytes || want == model.Character && len(text) > maxCharacters {
		setText(b, i, want, text)
		return
	}
	if b.Types[i] == model.LogEntry {
		b.Bits[i] = b.Store(text)
	}
	b.Types[i] = want
}

// setText stores a copy of text as row i's value of type want, cut to the limits and made valid UTF-8.
func setText(b *model.Batch, i int, want model.ValueType, text []byte) {
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	if len(text) > model.MaxTextBytes {
		text = cutUTF8(text, model.MaxTextBytes)
	}
	switch want {
	case model.LogEntry:
		offset := len(b.Arena)
		b.Arena = model.AppendLog(b.Arena, model.Log{Text: string(text)})
		b.Bits[i] = model.Span(offset, len(b.Arena)-offset)
	case model.Character:
		b.Bits[i] = b.Store(cutCharacters(text, maxCharacters))
	default:
		b.Bits[i] = b.Store(text)
	}
	b.Types[i] = want
}

func setUnsupported(b *model.Batch, i int, reason string) {
	b.Types[i] = model.Unsupported
	b.Bits[i] = b.Store([]byte(reason))
}

// cutUTF8 cuts text to at most n bytes without splitting a character.
func cutUTF8(text []byte, n int) []byte {
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// cutCharacters cuts text to at most n characters.
func cutCharacters(text []byte, n int) []byte {
	at := 0
	for range n {
		if at >= len(text) {
			return text
		}
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return text[:at]
}

// notSuitable is the message that Zabbix users know for a value of the wrong type. It shows at most 64 bytes of the value.
func notSuitable(text []byte, want model.ValueType) string {
	kind := map[model.ValueType]string{model.Uint: "Numeric (unsigned)", model.Float: "Numeric (float)"}[want]
	shown := string(text)
	if len(shown) > 64 {
		shown = strings.ToValidUTF8(shown[:64], "") + "…"
	}
	return fmt.Sprintf("Value %q is not suitable for value type %q.", shown, kind)
}

// formatNumber writes a numeric payload as text: integers exactly, floats in the shortest form that reads back.
func formatNumber(t model.ValueType, bits uint64) []byte {
	if t == model.Uint {
		return strconv.AppendUint(nil, bits, 10)
	}
	return strconv.AppendFloat(nil, math.Float64frombits(bits), 'g', -1, 64)
}

// trimNumber removes what Zabbix ignores around a number: white space and quotes at both ends, then one plus sign.
func trimNumber(text []byte) []byte {
	text = bytes.Trim(text, " \t\r\n\"")
	return bytes.TrimPrefix(text, []byte("+"))
}

// ParseUint reads an unsigned integer as Zabbix converts text for an unsigned item: decimal digits, or a decimal number
// that is not negative, cut to its integer part.
func ParseUint(text []byte) (uint64, bool) {
	var v uint64
	digits := 0
	for _, c := range text {
		if c < '0' || c > '9' {
			digits = -1
			break
		}
		digits++
		v = v*10 + uint64(c-'0')
	}
	if digits > 0 && digits < 20 {
		return v, true
	}
	text = trimNumber(text)
	if len(text) == 0 {
		return 0, false
	}
	if v, err := strconv.ParseUint(unsafe.String(&text[0], len(text)), 10, 64); err == nil {
		return v, true
	}
	f, ok := ParseFloat(text)
	if !ok {
		return 0, false
	}
	return floatToUint(f)
}

func floatToUint(f float64) (uint64, bool) {
	if f < 0 || f >= 1<<64 || f != f {
		return 0, false
	}
	return uint64(f), true
}

// maxNumberBytes bounds the text of a number.
const maxNumberBytes = 512

// ParseFloat reads a finite decimal number with optional sign, fraction and exponent; hexadecimal, infinity and NaN are
// refused as Zabbix refuses them. Small numbers take a way without the general algorithm; the result is the same.
func ParseFloat(text []byte) (float64, bool) {
	if v, ok := parseShortFloat(text); ok {
		return v, true
	}
	text = trimNumber(text)
	if len(text) == 0 || len(text) > maxNumberBytes {
		return 0, false
	}
	for _, c := range text {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(unsafe.String(&text[0], len(text)), 64)
	if err != nil {
		return 0, false
	}
	return v, true
}

// powersOfTen are exact in binary64.
var powersOfTen = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// parseShortFloat reads [-]digits[.digits] of at most 15 digits in all. Both the digits as an integer and the power of ten
// are exact then, so one division rounds correctly (Clinger 1990).
func parseShortFloat(text []byte) (float64, bool) {
	if len(text) == 0 || len(text) > 17 {
		return 0, false
	}
	negative := text[0] == '-'
	if negative {
		text = text[1:]
	}
	var mantissa uint64
	digits, fraction, point := 0, 0, false
	for _, c := range text {
		if c == '.' && !point {
			point = true
			continue
		}
		if c < '0' || c > '9' {
			return 0, false
		}
		mantissa = mantissa*10 + uint64(c-'0')
		digits++
		if point {
			fraction++
		}
	}
	if digits == 0 || digits > 15 {
		return 0, false
	}
	v := float64(mantissa) / powersOfTen[fraction]
	if negative {
		v = -v
	}
	return v, true
}

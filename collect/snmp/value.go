package snmp

import (
	"fmt"
	"math/big"
	"strconv"
	"unicode/utf8"

	"github.com/gosnmp/gosnmp"
)

// plainValue is a variable as the value of an item: numbers as they are, text where it is text, else bytes in hexadecimal. fault says why
// there is none.
func plainValue(pdu *gosnmp.SnmpPDU) (text []byte, fault string) {
	switch pdu.Type {
	case gosnmp.OctetString, gosnmp.BitString, gosnmp.Opaque, gosnmp.NsapAddress:
		b, _ := pdu.Value.([]byte)
		if printable(b) {
			return append([]byte{}, trimZeros(b)...), ""
		}
		return appendHex(nil, b), ""
	case gosnmp.NoSuchObject:
		return nil, missing(noObject) + pdu.Name
	case gosnmp.NoSuchInstance:
		return nil, missing(noInstance) + pdu.Name
	case gosnmp.EndOfMibView:
		return nil, missing(atEnd) + pdu.Name
	case gosnmp.Null:
		return nil, "the device answers with nothing for " + pdu.Name
	}
	if out, ok := appendNumber(nil, pdu); ok {
		return out, ""
	}
	if s, ok := pdu.Value.(string); ok {
		return []byte(s), ""
	}
	return nil, fmt.Sprintf("the device answers with type %s for %s, which is not read", pdu.Type, pdu.Name)
}

// missing is why there is no value; the OID follows.
func missing(what verdict) string {
	switch what {
	case noObject:
		return "the device has no such object: "
	case noInstance:
		return "the device has no such instance: "
	}
	return "the device has nothing at or behind "
}

// appendNumber writes a value that is a number.
func appendNumber(out []byte, pdu *gosnmp.SnmpPDU) ([]byte, bool) {
	switch v := pdu.Value.(type) {
	case float32:
		return strconv.AppendFloat(out, float64(v), 'f', -1, 32), true
	case float64:
		return strconv.AppendFloat(out, v, 'f', -1, 64), true
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, *big.Int:
		return append(out, gosnmp.ToBigInt(v).String()...), true
	}
	return out, false
}

// appendLine writes a variable as net-snmp's walk does with -On -Oe -Ot, which is what preprocessing steps read.
func appendLine(out []byte, pdu *gosnmp.SnmpPDU) []byte {
	out = append(append(out, pdu.Name...), " = "...)
	return append(appendTyped(out, pdu), '\n')
}

// FormatValue is the value of a variable with its type in front, as net-snmp prints it.
func FormatValue(pdu *gosnmp.SnmpPDU) string { return string(appendTyped(nil, pdu)) }

func appendTyped(out []byte, pdu *gosnmp.SnmpPDU) []byte {
	switch pdu.Type {
	case gosnmp.OctetString, gosnmp.NsapAddress:
		b, _ := pdu.Value.([]byte)
		switch {
		case len(b) == 0:
			out = append(out, `""`...)
		case printable(b):
			out = appendQuoted(append(out, "STRING: "...), b)
		default:
			out = append(appendHex(append(out, "Hex-STRING: "...), b), ' ')
		}
	case gosnmp.BitString, gosnmp.Opaque:
		b, _ := pdu.Value.([]byte)
		out = append(appendHex(append(out, "BITS: "...), b), ' ')
	case gosnmp.NoSuchObject, gosnmp.NoSuchInstance, gosnmp.EndOfMibView, gosnmp.Null:
		out = append(out, "NULL"...)
	default:
		names := map[gosnmp.Asn1BER]string{
			gosnmp.Integer: "INTEGER: ", gosnmp.Counter32: "Counter32: ", gosnmp.Counter64: "Counter64: ", gosnmp.Gauge32: "Gauge32: ", gosnmp.Uinteger32: "Gauge32: ",
			gosnmp.IPAddress: "IpAddress: ", gosnmp.ObjectIdentifier: "OID: ", gosnmp.OpaqueFloat: "Opaque: Float: ", gosnmp.OpaqueDouble: "Opaque: Double: ",
		}
		out = append(out, names[pdu.Type]...)
		var ok bool
		if out, ok = appendNumber(out, pdu); !ok {
			out = fmt.Append(out, pdu.Value)
		}
	}
	return out
}

func appendQuoted(out, text []byte) []byte {
	out = append(out, '"')
	for _, b := range trimZeros(text) {
		if b == '"' || b == '\\' {
			out = append(out, '\\')
		}
		out = append(out, b)
	}
	return append(out, '"')
}

func appendHex(out, b []byte) []byte {
	const digits = "0123456789ABCDEF"
	for i, c := range b {
		if i > 0 {
			out = append(out, ' ')
		}
		out = append(out, digits[c>>4], digits[c&15])
	}
	return out
}

// trimZeros cuts the bytes behind the text that some devices send.
func trimZeros(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return b
}

// printable reports whether bytes are a text: UTF-8 without control characters but white space, zeros at the end aside.
func printable(b []byte) bool {
	b = trimZeros(b)
	if !utf8.Valid(b) {
		return false
	}
	for _, c := range b {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f {
			return false
		}
	}
	return true
}

package zbx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// ProxyFind is one row of what a proxy found by network discovery: what one check brought at one port of an address.
type ProxyFind struct {
	// At is when, Unix seconds.
	At int64
	// Rule and Check are the ids that the server gave. The row behind the checks of an address has no Check: it says whether any of them was
	// answered.
	Rule, Check uint64
	IP, DNS     string
	Port        int
	Value       string
	Down        bool
}

// AddFind appends what was found; it comes behind the values.
func (p *ProxyRequest) AddFind(dst []byte, f *ProxyFind) []byte {
	dst = strconv.AppendInt(append(p.open(dst, "discovery data"), `{"clock":`...), f.At, 10)
	dst = strconv.AppendUint(append(dst, `,"drule":`...), f.Rule, 10)
	// Zabbix's server wants the member in every row.
	if dst = append(dst, `,"dcheck":`...); f.Check == 0 {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendUint(dst, f.Check, 10)
	}
	dst = AppendString(append(dst, `,"ip":`...), f.IP)
	dst = AppendString(append(dst, `,"dns":`...), f.DNS)
	if f.Port != 0 {
		dst = strconv.AppendInt(append(dst, `,"port":`...), int64(f.Port), 10)
	}
	if f.Value != "" {
		dst = AppendString(append(dst, `,"value":`...), f.Value)
	}
	if f.Down {
		dst = append(dst, `,"status":1`...)
	}
	return append(dst, '}')
}

// loose is a number that may come as a number, as a text, or as null, which is zero like a missing one.
type loose uint64

// UnmarshalJSON reads it.
func (l *loose) UnmarshalJSON(text []byte) error {
	digits := string(bytes.Trim(text, `"`))
	if digits == "null" || digits == "" {
		*l = 0
		return nil
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return fmt.Errorf("found %.40q, expected a number", text)
	}
	*l = loose(n)
	return nil
}

// DecodeFinds reads a list of what a proxy found, at most limit rows.
func DecodeFinds(text []byte, limit int) ([]ProxyFind, error) {
	if len(text) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var list []ProxyFind
	for d.More() {
		if len(list) == limit {
			return nil, fmt.Errorf("more than %d entries", limit)
		}
		var row struct {
			Clock  loose  `json:"clock"`
			Rule   loose  `json:"drule"`
			Check  loose  `json:"dcheck"`
			IP     string `json:"ip"`
			DNS    string `json:"dns"`
			Port   loose  `json:"port"`
			Value  string `json:"value"`
			Status loose  `json:"status"`
		}
		if err := d.Decode(&row); err != nil {
			return nil, fmt.Errorf("entry %d: %w", len(list)+1, err)
		}
		list = append(list, ProxyFind{
			At: int64(row.Clock), Rule: uint64(row.Rule), Check: uint64(row.Check), IP: row.IP, DNS: row.DNS, Port: int(min(row.Port, 1<<16)), Value: row.Value, Down: row.Status != 0,
		})
	}
	return list, nil
}

package zbx

import (
	"strconv"
	"unicode/utf8"

	"tidemark/model"
)

// AppendString appends s to dst as a JSON string. Invalid UTF-8 becomes U+FFFD.
func AppendString[T string | []byte](dst []byte, s T) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			i++
			switch {
			case c == '"' || c == '\\':
				dst = append(dst, '\\', c)
			case c == '\n':
				dst = append(dst, '\\', 'n')
			case c < ' ' || c == 0x7F:
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			default:
				dst = append(dst, c)
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(string(s[i:min(len(s), i+utf8.UTFMax)]))
		dst = utf8.AppendRune(dst, r)
		i += n
	}
	return append(dst, '"')
}

// AppendActiveChecks appends the request by which an agent asks for its list. Empty fields are left out, except that
// ConfigRevision is there whenever a session is.
func AppendActiveChecks(dst []byte, r *Request) []byte {
	dst = append(dst, `{"request":"active checks","host":`...)
	dst = AppendString(dst, r.Host)
	dst = appendMember(dst, "version", r.Version)
	dst = appendNumber(dst, "variant", r.Variant)
	dst = appendMember(dst, "session", r.Session)
	if len(r.Session) > 0 {
		dst = append(dst, `,"config_revision":`...)
		dst = strconv.AppendUint(dst, r.ConfigRevision, 10)
	}
	dst = appendMember(dst, "host_metadata", r.Metadata)
	dst = appendMember(dst, "interface", r.Interface)
	dst = appendMember(dst, "ip", r.IP)
	dst = appendNumber(dst, "port", r.Port)
	dst = appendNumber(dst, "tidemark", r.Tidemark)
	return append(dst, '}')
}

// AppendHeartbeat appends an agent's heartbeat.
func AppendHeartbeat(dst []byte, r *Request) []byte {
	dst = append(dst, `{"request":"active check heartbeat","host":`...)
	dst = AppendString(dst, r.Host)
	dst = appendMember(dst, "version", r.Version)
	dst = append(dst, `,"heartbeat_freq":`...)
	dst = strconv.AppendUint(dst, r.HeartbeatSeconds, 10)
	return append(dst, '}')
}

func appendMember(dst []byte, name string, v []byte) []byte {
	if len(v) == 0 {
		return dst
	}
	dst = append(dst, ',', '"')
	dst = append(dst, name...)
	dst = append(dst, '"', ':')
	return AppendString(dst, v)
}

func appendNumber(dst []byte, name string, v uint64) []byte {
	if v == 0 {
		return dst
	}
	dst = append(dst, ',', '"')
	dst = append(dst, name...)
	dst = append(dst, '"', ':')
	return strconv.AppendUint(dst, v, 10)
}

// DataRequest builds `agent data` and `sender data` requests: Begin, Declare for each declaration, Add for each row, End.
// Declarations must come before rows.
type DataRequest struct {
	// Name is AgentData or SenderData.
	Name string
	// Host, Session, Version are left out when empty.
	Host, Session, Version string
	// Variant and Tidemark are left out when zero.
	Variant, Tidemark uint64

	declared, added bool
}

// Begin appends the head of the request to dst.
func (d *DataRequest) Begin(dst []byte) []byte {
	d.declared, d.added = false, false
	dst = append(dst, `{"request":`...)
	dst = AppendString(dst, d.Name)
	dst = appendMember(dst, "session", []byte(d.Session))
	dst = appendMember(dst, "host", []byte(d.Host))
	dst = appendMember(dst, "version", []byte(d.Version))
	dst = appendNumber(dst, "variant", d.Variant)
	return appendNumber(dst, "tidemark", d.Tidemark)
}

// Declare appends a declaration.
func (d *DataRequest) Declare(dst []byte, c *Declaration) []byte {
	if !d.declared {
		dst = append(dst, `,"declare":[`...)
		d.declared = true
	} else {
		dst = append(dst, ',')
	}
	dst = append(dst, `{"key":`...)
	dst = AppendString(dst, c.Key)
	dst = append(dst, `,"type":"`...)
	dst = append(dst, c.Type.String()...)
	dst = append(dst, '"')
	dst = appendMember(dst, "name", []byte(c.Name))
	dst = appendMember(dst, "units", []byte(c.Units))
	if ms := c.Interval.Milliseconds(); ms > 0 {
		dst = appendNumber(dst, "interval_ms", uint64(ms))
	}
	if len(c.Labels) > 0 {
		dst = appendLabels(dst, c.Labels)
	}
	return append(dst, '}')
}

func appendLabels(dst []byte, ls model.Labels) []byte {
	dst = append(dst, `,"labels":`...)
	for i, l := range ls {
		dst = append(dst, "{,"[min(i, 1)])
		dst = AppendString(dst, l.Name)
		dst = append(dst, ':')
		dst = AppendString(dst, l.Value)
	}
	return append(dst, '}')
}

// Add appends a row. Members are written as row.Has says; ID when it is not zero.
func (d *DataRequest) Add(dst []byte, row *Row) []byte {
	if !d.added {
		if d.declared {
			dst = append(dst, ']')
		}
		dst = append(dst, `,"data":[`...)
		d.added = true
	} else {
		dst = append(dst, ',')
	}
	return row.Append(dst)
}

// Append appends the row as an object.
func (row *Row) Append(dst []byte) []byte {
	dst = append(dst, '{')
	start := len(dst)
	dst = appendNumber(dst, "id", row.ID)
	if row.Has&HasHost != 0 {
		dst = AppendString(append(dst, `,"host":`...), row.Host)
	}
	if row.Has&HasKey != 0 {
		dst = AppendString(append(dst, `,"key":`...), row.Key)
	}
	if row.Has&HasItemID != 0 {
		dst = strconv.AppendUint(append(dst, `,"itemid":`...), row.ItemID, 10)
	}
	if row.Has&HasValue != 0 {
		dst = AppendString(append(dst, `,"value":`...), row.Value)
	}
	if row.Unsupported {
		dst = append(dst, `,"state":1`...)
	}
	dst = row.appendTimes(dst)
	// The first member has no comma before it.
	if len(dst) > start {
		dst = append(dst[:start], dst[start+1:]...)
	}
	return append(dst, '}')
}

func (row *Row) appendTimes(dst []byte) []byte {
	if row.Has&HasClock != 0 {
		dst = strconv.AppendUint(append(dst, `,"clock":`...), uint64(row.Clock), 10)
	}
	if row.Has&HasNS != 0 {
		dst = strconv.AppendUint(append(dst, `,"ns":`...), uint64(row.NS), 10)
	}
	if row.Has&HasLastLogSize != 0 {
		dst = strconv.AppendUint(append(dst, `,"lastlogsize":`...), row.LastLogSize, 10)
	}
	if row.Has&HasMTime != 0 {
		dst = strconv.AppendUint(append(dst, `,"mtime":`...), row.MTime, 10)
	}
	if row.Timestamp > 0 {
		dst = appendNumber(dst, "timestamp", uint64(row.Timestamp))
	}
	dst = appendMember(dst, "source", row.Source)
	dst = appendNumber(dst, "severity", uint64(row.Severity))
	return appendNumber(dst, "eventid", uint64(row.EventID))
}

// End appends the end of the request. It may be sent as it is, framed.
func (d *DataRequest) End(dst []byte) []byte {
	switch {
	case d.added:
	case d.declared:
		dst = append(dst, `],"data":[`...)
	default:
		dst = append(dst, `,"data":[`...)
	}
	return append(dst, "]}"...)
}

package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"tidemark/model"
)

// The kinds of records. See FORMAT.md.
const (
	recordReserve byte = 1
	recordDeclare byte = 2
	recordForget  byte = 3
)

// Limits of what one record may hold. Declare refuses what is over them, so a larger one in a log is damage.
const (
	maxKeyBytes    = 2048 * 4 // Zabbix keys have at most 2048 characters
	maxNameBytes   = 2048
	maxHelpBytes   = 8192
	maxUnitsBytes  = 255
	maxHostBytes   = 255 * 4
	maxLabels      = 64
	maxLabelName   = 256
	maxLabelBytes  = 16 << 10 // all labels together
	maxForgetIDs   = 4096
	maxRecordBytes = 64 << 10
)

// errRecord is damage inside a record whose checksum is right.
var errRecord = errors.New("record is shorter or longer than its contents say")

// record is one decoded record; which fields count depends on kind.
type record struct {
	kind  byte
	limit model.ItemID
	item  definition
	ids   []model.ItemID
}

func appendReserve(b []byte, limit model.ItemID) []byte {
	return binary.AppendUvarint(append(b, recordReserve), uint64(limit))
}

func appendForget(b []byte, ids []model.ItemID) []byte {
	b = binary.AppendUvarint(append(b, recordForget), uint64(len(ids)))
	for _, id := range ids {
		b = binary.AppendUvarint(b, uint64(id))
	}
	return b
}

func appendDeclare(b []byte, d definition) []byte {
	b = append(b, recordDeclare)
	b = binary.AppendUvarint(b, uint64(d.id))
	b = binary.AppendUvarint(b, uint64(d.hostID))
	b = binary.AppendUvarint(b, uint64(d.seenAt))
	b = append(b, byte(d.valueType))
	b = binary.AppendUvarint(b, uint64(d.interval/time.Millisecond))
	for _, s := range [...]string{d.host, d.key, d.metric, d.name, d.units, d.help} {
		b = appendText(b, s)
	}
	b = binary.AppendUvarint(b, uint64(len(d.labels)))
	for _, l := range d.labels {
		b = appendText(appendText(b, l.Name), l.Value)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decoder takes a record apart. After the first failure every call gives zero values.
type decoder struct {
	b      []byte
	failed bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if d.failed || n <= 0 {
		d.failed = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) byte() byte {
	if d.failed || len(d.b) == 0 {
		d.failed = true
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) text(limit int) string {
	n := d.uvarint()
	if d.failed || n > uint64(limit) || n > uint64(len(d.b)) {
		d.failed = true
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

// decodeRecord reads the payload of one record.
func decodeRecord(payload []byte) (record, error) {
	d := &decoder{b: payload}
	r := record{kind: d.byte()}
	switch r.kind {
	case recordReserve:
		r.limit = model.ItemID(d.uvarint())
	case recordDeclare:
		r.item = d.definition()
	case recordForget:
		n := d.uvarint()
		if n > maxForgetIDs {
			return r, errRecord
		}
		for range n {
			r.ids = append(r.ids, model.ItemID(d.uvarint()))
		}
	default:
		return r, fmt.Errorf("record has the unknown kind %d", r.kind)
	}
	if d.failed || len(d.b) != 0 {
		return r, errRecord
	}
	return r, nil
}

func (d *decoder) definition() definition {
	v := definition{kind: model.Declared}
	v.id, v.hostID = model.ItemID(d.uvarint()), model.HostID(d.uvarint())
	v.seenAt = uint32(d.uvarint())
	v.valueType = model.ValueType(d.byte())
	v.interval = time.Duration(min(d.uvarint(), 1<<32-1)) * time.Millisecond
	v.silence = v.interval
	v.host, v.key, v.metric = d.text(maxHostBytes), d.text(maxKeyBytes), d.text(maxNameBytes)
	v.name, v.units, v.help = d.text(maxNameBytes), d.text(maxUnitsBytes), d.text(maxHelpBytes)
	n := d.uvarint()
	if v.id == 0 || v.id >= 1<<63 || v.key == "" || v.valueType > model.Binary || n > maxLabels {
		d.failed = true
		return v
	}
	for range n {
		l := model.Label{Name: d.text(maxLabelName), Value: d.text(maxLabelBytes)}
		if d.failed || len(v.labels) > 0 && v.labels[len(v.labels)-1].Name >= l.Name {
			d.failed = true
			return v
		}
		v.labels = append(v.labels, l)
	}
	return v
}

package translog

import (
	"math"
	"reflect"
	"testing"

	"tidemark/model"
)

// sampleBatch has a value of every type and odd numbers.
func sampleBatch() *model.Batch {
	b := &model.Batch{ArrivedAt: 1_700_000_000_000_000_000}
	b.AppendFloat(1, b.ArrivedAt, math.Copysign(0, -1))
	b.Append(1, b.ArrivedAt+1, model.Float, 0x7FF0000000000001)
	b.AppendUint(math.MaxUint64, -1, math.MaxUint64)
	b.AppendUint(7, math.MaxInt64, 1<<63)
	b.AppendUint(7, math.MinInt64, 0)
	b.AppendString(9, b.ArrivedAt, model.Text, "")
	b.AppendString(9, b.ArrivedAt+9, model.Character, "text")
	b.AppendLog(9, b.ArrivedAt+10, model.Log{Text: "line", Source: "s"})
	b.AppendBytes(9, b.ArrivedAt+11, model.Binary, []byte{0, 1, 2})
	b.Flags[3] = model.Late | model.Moved
	b.Marks = []model.Mark{{Key: "k", Value: "v", At: 5}, {Key: "empty", At: -5}}
	return b
}

func allRows(b *model.Batch) []int32 {
	rows := make([]int32, b.Len())
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows
}

func TestDecodeBatch_givesBackWhatWasEncoded(t *testing.T) {
	var e Encoder
	for _, b := range []*model.Batch{sampleBatch(), {ArrivedAt: 5}, {Marks: []model.Mark{{Key: "only"}}}} {
		payload := e.AppendBatch(nil, b, allRows(b), nil, b.Marks)
		got := &model.Batch{}
		if err := DecodeBatch(got, payload); err != nil {
			t.Fatal(err)
		}
		if got.Len() != b.Len() || got.ArrivedAt != b.ArrivedAt || len(got.Marks) != len(b.Marks) {
			t.Fatalf("%+v, expected %+v", got, b)
		}
		for i := range b.Items {
			if got.Items[i] != b.Items[i] || got.At[i] != b.At[i] || got.Types[i] != b.Types[i] || got.Flags[i] != b.Flags[i] {
				t.Errorf("row %d differs", i)
			}
			if b.Types[i].InArena() {
				if string(got.Bytes(i)) != string(b.Bytes(i)) {
					t.Errorf("text %d is %q, expected %q", i, got.Bytes(i), b.Bytes(i))
				}
			} else if got.Bits[i] != b.Bits[i] {
				t.Errorf("value %d is %x, expected %x", i, got.Bits[i], b.Bits[i])
			}
		}
		for i := range b.Marks {
			if got.Marks[i] != b.Marks[i] {
				t.Errorf("mark %d is %+v, expected %+v", i, got.Marks[i], b.Marks[i])
			}
		}
		for cut := range payload {
			if DecodeBatch(got, payload[:cut]) == nil {
				t.Errorf("the record cut to %d of %d bytes was taken", cut, len(payload))
			}
		}
	}
}

// decimalBatch has floats that are logged as integers, beside others.
func decimalBatch() (*model.Batch, *Decimals) {
	b := &model.Batch{ArrivedAt: 1_700_000_000_000_000_000}
	d := &Decimals{}
	for i := range 21 {
		item, at := model.ItemID(100+i), b.ArrivedAt
		switch i % 7 {
		case 3:
			b.AppendUint(item, at, uint64(i))
			d.Places, d.Integers = append(d.Places, 0), append(d.Integers, 99)
		case 5:
			b.AppendFloat(item, at, math.Pi)
			d.Places, d.Integers = append(d.Places, 0), append(d.Integers, 99)
		default:
			m := int64(i*i*i*i*1_000_003 - 77*i)
			b.AppendFloat(item, at, float64(m)/100)
			d.Places, d.Integers = append(d.Places, 3), append(d.Integers, uint64(m))
		}
	}
	return b, d
}

func TestDecodeBatch_decimals(t *testing.T) {
	var e Encoder
	b, d := decimalBatch()
	for _, rows := range [][]int32{allRows(b), {1, 3, 4, 5, 20}, {2}} {
		part := &Decimals{}
		for _, i := range rows {
			part.Places, part.Integers = append(part.Places, d.Places[i]), append(part.Integers, d.Integers[i])
		}
		payload := e.AppendBatch(nil, b, rows, part, nil)
		got := &model.Batch{}
		if err := DecodeBatch(got, payload); err != nil {
			t.Fatal(err)
		}
		for k, i := range rows {
			if got.Items[k] != b.Items[i] || got.At[k] != b.At[i] || got.Types[k] != b.Types[i] || got.Bits[k] != b.Bits[i] {
				t.Errorf("row %d is %d %d %d %x, expected %d %d %d %x", i, got.Items[k], got.At[k], got.Types[k], got.Bits[k],
					b.Items[i], b.At[i], b.Types[i], b.Bits[i])
			}
		}
		for cut := range payload {
			if DecodeBatch(got, payload[:cut]) == nil {
				t.Errorf("the record cut to %d of %d bytes was taken", cut, len(payload))
			}
		}
	}
}

func FuzzDecodeBatch(f *testing.F) {
	var e Encoder
	b, d := decimalBatch()
	f.Add(e.AppendBatch(nil, b, allRows(b), d, nil))
	b = sampleBatch()
	f.Add(e.AppendBatch(nil, b, allRows(b), nil, b.Marks))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, payload []byte) {
		got := &model.Batch{}
		if DecodeBatch(got, payload) != nil {
			if got.Len() != 0 {
				t.Error("a damaged record left rows")
			}
			return
		}
		var e Encoder
		again := &model.Batch{}
		if err := DecodeBatch(again, e.AppendBatch(nil, got, allRows(got), nil, got.Marks)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Items, again.Items) || !reflect.DeepEqual(got.At, again.At) || !reflect.DeepEqual(got.Bits, again.Bits) {
			t.Error("encoding again gives other values")
		}
	})
}

func FuzzScan(f *testing.F) {
	var e Encoder
	b := sampleBatch()
	body := appendRecord(nil, 100, 90, KindBatch, e.AppendBatch(nil, b, allRows(b), nil, b.Marks))
	body = appendRecord(body, 100+model.LSN(len(body)), 100, KindBatch, []byte{1, 2, 3})
	f.Add(body, true, uint16(0))
	f.Add(body, false, uint16(30))
	f.Fuzz(func(t *testing.T, body []byte, last bool, limit uint16) {
		s := scanner{name: "log", body: body, first: 100, last: last, limit: 100 + model.LSN(limit)}
		at := model.LSN(100)
		end, err := s.scan(func(r record) error {
			if r.start < at || r.end > 100+model.LSN(len(body)) {
				t.Errorf("record %d to %d behind %d", r.start, r.end, at)
			}
			at = r.end
			return nil
		})
		if err != nil || end < at {
			t.Errorf("end %d, last record ends at %d: %v", end, at, err)
		}
	})
}

func TestScanner_tellsDamageFromTornWrites(t *testing.T) {
	var body []byte
	var starts []int
	durable := model.LSN(0)
	for i := range 6 {
		starts = append(starts, len(body))
		body = appendRecord(body, model.LSN(len(body)), durable, KindBatch, make([]byte, 20+i))
		if i < 3 { // the first three were on disk before the others were made
			durable = model.LSN(len(body))
		}
	}
	for i, start := range starts {
		damaged := append([]byte(nil), body...)
		damaged[start+20] ^= 4
		s := scanner{name: "log", body: damaged, last: true}
		n := 0
		end, err := s.scan(func(record) error { n++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if i < 3 { // damage: the rest is there
			if n != 5 || int(end) != len(body) || len(s.gaps) != 1 || s.gaps[0].From != model.LSN(start) {
				t.Errorf("record %d damaged: %d records up to %d, gaps %v", i, n, end, s.gaps)
			}
		} else if n != i || int(end) != start || len(s.gaps) != 0 || s.leftovers != (i < 5) { // torn: the log ends
			t.Errorf("record %d torn: %d records up to %d, gaps %v, leftovers %v", i, n, end, s.gaps, s.leftovers)
		}
	}
}

// FuzzRecords reads records that came from another machine: only what was written passes.
func FuzzRecords(f *testing.F) {
	var e Encoder
	b := sampleBatch()
	one := appendRecord(nil, 100, 90, KindBatch, e.AppendBatch(nil, b, allRows(b), nil, b.Marks))
	f.Add(one, uint64(100))
	f.Add(appendRecord(one, 100+model.LSN(len(one)), 90, kindClosed, nil), uint64(100))
	f.Add(one[:len(one)-1], uint64(100))
	f.Fuzz(func(t *testing.T, sent []byte, from uint64) {
		var made []byte
		end, err := Records(sent, model.LSN(from), func(_ model.LSN, kind byte, payload []byte) error {
			made = append(made, kind)
			return DecodeBatch(&model.Batch{}, payload)
		})
		if err == nil && end-model.LSN(from) != model.LSN(len(sent)) {
			t.Errorf("%d bytes end at %d, they started at %d", len(sent), end, from)
		}
		if err != nil && len(sent) == 0 {
			t.Error(err)
		}
	})
}

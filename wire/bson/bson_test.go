package bson

import (
	"errors"
	"testing"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"tidemark/test/fuzztest"
)

// sample has every kind that the driver writes.
func sample(t testing.TB) []byte {
	t.Helper()
	decimal, err := driver.ParseDecimal128("1.5")
	if err != nil {
		t.Fatal(err)
	}
	b, err := driver.Marshal(driver.D{
		{Key: "double", Value: 1.5},
		{Key: "string", Value: "text"},
		{Key: "document", Value: driver.D{{Key: "a", Value: int32(1)}}},
		{Key: "array", Value: driver.A{int32(1), "two"}},
		{Key: "binary", Value: driver.Binary{Subtype: 4, Data: make([]byte, 16)}},
		{Key: "undefined", Value: driver.Undefined{}},
		{Key: "objectid", Value: driver.NewObjectID()},
		{Key: "boolean", Value: true},
		{Key: "datetime", Value: driver.NewDateTimeFromTime(time.Unix(1, 0))},
		{Key: "null", Value: nil},
		{Key: "regex", Value: driver.Regex{Pattern: "a.*", Options: "i"}},
		{Key: "dbpointer", Value: driver.DBPointer{DB: "db.c", Pointer: driver.NewObjectID()}},
		{Key: "javascript", Value: driver.JavaScript("x")},
		{Key: "symbol", Value: driver.Symbol("s")},
		{Key: "scoped", Value: driver.CodeWithScope{Code: "x", Scope: driver.D{}}},
		{Key: "int32", Value: int32(-7)},
		{Key: "timestamp", Value: driver.Timestamp{T: 1, I: 2}},
		{Key: "int64", Value: int64(1) << 40},
		{Key: "decimal", Value: decimal},
		{Key: "minkey", Value: driver.MinKey{}},
		{Key: "maxkey", Value: driver.MaxKey{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestReader(t *testing.T) {
	b := sample(t)
	want, err := driver.Raw(b).Elements()
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(b)
	if err != nil {
		t.Fatal(err)
	}
	var e Element
	for _, w := range want {
		ok, err := r.Next(&e)
		if !ok || err != nil {
			t.Fatalf("%s: %v %v", w.Key(), ok, err)
		}
		if string(e.Key) != w.Key() || byte(e.Kind) != byte(w.Value().Type) || string(e.Value) != string(w.Value().Value) {
			t.Errorf("%s: kind %#x, %d bytes", e.Key, e.Kind, len(e.Value))
		}
	}
	if ok, err := r.Next(&e); ok || err != nil {
		t.Errorf("behind the end: %v %v", ok, err)
	}
	if !Lookup(b, "int64", &e) {
		t.Fatal("int64 not found")
	}
	if n, ok := e.Integer(); !ok || n != 1<<40 {
		t.Errorf("int64 is %d", n)
	}
	if !Lookup(b, "string", &e) || string(e.Text()) != "text" {
		t.Errorf("string is %q", e.Text())
	}
	if Lookup(b, "absent", &e) {
		t.Error("found an absent key")
	}
}

// A cut document gives its elements up to the cut, then ErrShort, wherever the cut is.
func TestReader_cut(t *testing.T) {
	b := sample(t)
	for n := 4; n < len(b); n++ {
		r, err := NewReader(b[:n])
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		var e Element
		for {
			ok, err := r.Next(&e)
			if errors.Is(err, ErrShort) {
				break
			}
			if !ok || err != nil {
				t.Fatalf("cut at %d: %v %v, want ErrShort", n, ok, err)
			}
		}
	}
}

// fuzzBytes is what reading one input may allocate: nothing by itself, and what the runtime counts in lumps.
const fuzzBytes = 256 << 10

func FuzzReader(f *testing.F) {
	b := sample(f)
	f.Add(b)
	f.Add(b[:40])
	f.Add([]byte{5, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzztest.Within(t, fuzzBytes, func() {
			r, err := NewReader(b)
			if err != nil {
				return
			}
			var e Element
			for range len(b) + 1 {
				ok, err := r.Next(&e)
				if !ok || err != nil {
					return
				}
				e.Text()
				e.Number()
			}
			t.Error("more elements than bytes")
		})
	})
}

func BenchmarkReader(b *testing.B) {
	doc := sample(b)
	b.ReportAllocs()
	for b.Loop() {
		r, _ := NewReader(doc)
		var e Element
		for {
			if ok, _ := r.Next(&e); !ok {
				break
			}
		}
	}
}

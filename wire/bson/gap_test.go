package bson

import (
	"bytes"
	"fmt"
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"tidemark/test/fuzztest"
)

// splice puts the start of a document and what FindGap asks for together, as a reader of a wire does.
func splice(t *testing.T, whole []byte, cut int) []byte {
	t.Helper()
	b := bytes.Clone(whole[:cut])
	removed := 0
	for round := range 8 {
		n, err := Length(b)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if n <= len(b) {
			return b[:n]
		}
		var g Gap
		if !FindGap(b, round >= 3, &g) {
			t.Fatalf("cut at %d: no gap", cut)
		}
		if g.Keep > len(b) || g.Resume < len(b) || g.Resume+removed > len(whole) {
			t.Fatalf("cut at %d of %d: keep %d, resume %d", cut, len(b), g.Keep, g.Resume)
		}
		g.Shorten(b, 0)
		b = append(b[:g.Keep], whole[g.Resume+removed:min(len(whole), g.Resume+removed+600)]...)
		removed += g.Resume - g.Keep
	}
	return nil
}

// Wherever a command is cut, what is put together is a well-formed document with its last field, and a list is one gap.
func TestFindGap(t *testing.T) {
	list := driver.A{}
	for i := range 200 {
		list = append(list, fmt.Sprint("value ", i))
	}
	whole, err := driver.Marshal(driver.D{
		{Key: "find", Value: "users"},
		{Key: "filter", Value: driver.D{{Key: "a", Value: driver.D{{Key: "$in", Value: list}}}, {Key: "b", Value: driver.A{driver.D{{Key: "c", Value: 1}}, driver.D{{Key: "d", Value: bytes.Repeat([]byte("x"), 9000)}}}}}},
		{Key: "$db", Value: "shop"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for cut := 4; cut < len(whole); cut++ {
		b := splice(t, whole, cut)
		if b == nil {
			t.Fatalf("cut at %d: not whole after eight parts", cut)
		}
		if err := driver.Raw(b).Validate(); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		var e Element
		if !Lookup(b, "$db", &e) || string(e.Text()) != "shop" {
			t.Fatalf("cut at %d: the last field is lost", cut)
		}
	}
}

func FuzzFindGap(f *testing.F) {
	b := sample(f)
	f.Add(b[:50], true)
	f.Add(b[:120], false)
	f.Fuzz(func(t *testing.T, b []byte, coarse bool) {
		fuzztest.Within(t, fuzzBytes, func() {
			var g Gap
			if !FindGap(b, coarse, &g) {
				return
			}
			if g.Keep < 0 || g.Keep > len(b) || g.Resume < len(b) || g.Resume > MaxDocumentBytes*2 || g.Depth > maxGapDepth {
				t.Errorf("of %d bytes: %+v", len(b), g)
			}
			g.Shorten(b, 0)
		})
	})
}

package queryplan

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestPlan_roundTrip(t *testing.T) {
	uses := uint64(7)
	p := &Plan{
		Summary: "IXSCAN {a: 1}", Stages: []string{"FETCH", "IXSCAN"}, Used: []string{"a_1"}, Rejected: 2, Sorts: true, Trial: &Trial{Documents: 100, Keys: 101, Returned: 1},
		Indexes: []Index{{Name: "a_1", Key: "{a: 1}", Uses: &uses}}, IndexesKnown: true, Hints: []Hint{{Key: "{a: 1, b: 1}", Why: "x"}}, Notes: []string{"n"},
	}
	got, err := Decode([]byte(Encode(p)))
	if err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("%+v, %v; want %+v", got, err, p)
	}
}

// A plan that is too large is cut, and can still be read.
func TestEncode_limits(t *testing.T) {
	for _, sign := range []string{"ä", "<", "\x01"} {
		testLimits(t, strings.Repeat(sign, 4000))
	}
}

func testLimits(t *testing.T, long string) {
	t.Helper()
	p := &Plan{Summary: long}
	for i := range 200 {
		p.Stages = append(p.Stages, long)
		p.Notes = append(p.Notes, long)
		p.Hints = append(p.Hints, Hint{long, long})
		p.Indexes = append(p.Indexes, Index{Name: fmt.Sprint(i), Key: long})
	}
	text := Encode(p)
	got, err := Decode([]byte(text))
	if err != nil || len(text) > MaxBytes || len(got.Summary) > MaxNameBytes {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func TestDecode_refuses(t *testing.T) {
	for _, bad := range []string{"", "null", "[]", "{", `{"rejected":"x"}`, `{"notes":["1","2","3","4","5"]}`, `{"summary":"` + strings.Repeat("x", MaxBytes) + `"}`} {
		if _, err := Decode([]byte(bad)); err == nil {
			t.Errorf("%.40q is taken", bad)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(Encode(&Plan{Summary: "COLLSCAN", Scans: true, Hints: []Hint{{"{a: 1}", "equality on a"}}})))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Decode(text)
		if err != nil {
			return
		}
		if _, err := Decode([]byte(Encode(p))); err != nil {
			t.Errorf("what was read cannot be read again: %v", err)
		}
	})
}

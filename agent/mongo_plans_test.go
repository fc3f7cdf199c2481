package agent

import (
	"fmt"
	"net/netip"
	"testing"

	"tidemark/model"
	"tidemark/sniff/shape"
)

func TestSameServer(t *testing.T) {
	local := []netip.Addr{netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("fd00::5")}
	f := func(instance, server string, want bool) {
		t.Helper()
		if got := sameServer(instance, server, local); got != want {
			t.Errorf("%s and %s: %v", instance, server, got)
		}
	}
	f("127.0.0.1:27017", "127.0.0.1:27017", true)
	f("10.0.0.5:27017", "127.0.0.1:27017", true)
	f("[fd00::5]:27017", "localhost:27017", true)
	f("[::1]:27017", "127.0.0.1:27017", true)
	f("10.0.0.6:27017", "127.0.0.1:27017", false)
	f("10.0.0.5:27018", "127.0.0.1:27017", false)
	f("10.0.0.6:27017", "10.0.0.6:27017", true)
	f("127.0.0.1:27017 (log)", "127.0.0.1:27017", true)
	f("", "127.0.0.1:27017", false)
	f("x", "y", false)
}

// The dearest shapes of the server that is asked, and no more of them than bounds allow.
func TestMongoPlans_dearest(t *testing.T) {
	var off, p mongoPlans
	off.spent("127.0.0.1:27017", &shape.Shape{Collection: "c"}, 1)
	p.open("127.0.0.1:27017")
	for i := range maxSpending + 100 {
		p.spent("127.0.0.1:27017", &shape.Shape{Fingerprint: shape.Fingerprint(i), Database: "shop", Collection: "c", Command: "find", Text: "find"}, uint64(1+i))
	}
	p.spent("127.0.0.1:27017", &shape.Shape{Fingerprint: 1, Collection: "c", Command: "find"}, 1<<40)
	p.spent("10.9.9.9:27017", &shape.Shape{Fingerprint: 2, Collection: "c", Command: "find"}, 1<<50)
	if len(p.costs) != maxSpending {
		t.Errorf("%d shapes are kept", len(p.costs))
	}
	got := p.dearest(func(instance string) bool { return sameServer(instance, "127.0.0.1:27017", nil) })
	if len(got) != plansPerRound || got[0].key.fingerprint != 1 || got[1].key.fingerprint != maxSpending-1 {
		t.Errorf("%d shapes, the first %+v", len(got), got[0])
	}
	if again := p.dearest(func(string) bool { return true }); len(again) != 0 {
		t.Errorf("%d shapes once more", len(again))
	}
	known := map[planKey]*item{}
	i := planItem(known, got[0], 1e9)
	if want := fmt.Sprintf("mongo.plan[127.0.0.1:27017,%016x]", 1); i.key != want || i.declaration.Type != model.Text || planItem(known, got[0], 1e9) != i {
		t.Errorf("item %+v, want %s", i, want)
	}
}

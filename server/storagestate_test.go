package server

import (
	"testing"

	"tidemark/storage/dbengine"
	"tidemark/storage/dbengine/header"
)

func TestServer_storageState(t *testing.T) {
	r := run(t, t.TempDir())
	var got storageAnswer
	r.get("/api/storage", &got)
	if got.Engine != "dbengine" || got.QuotaBytes <= 0 || got.UsedBytes <= 0 || got.LogBytes <= 0 {
		t.Errorf("a new store says %+v", got)
	}
	if len(got.Tiers) != 3 || got.Tiers[0].Tier != "values" || got.Tiers[1].Tier != "minutes" || got.Tiers[2].Tier != "hours" {
		t.Fatalf("tiers are %+v, expected values, minutes, hours", got.Tiers)
	}
	if limit := got.Tiers[1].LimitBytes; limit <= got.Tiers[2].LimitBytes || limit >= got.QuotaBytes {
		t.Errorf("minutes may take %d bytes of %d, hours %d", limit, got.QuotaBytes, got.Tiers[2].LimitBytes)
	}
}

func TestListPairs(t *testing.T) {
	var pairs []dbengine.PairInfo
	for i := range int64(1001) {
		p := dbengine.PairInfo{Name: "a", Tier: header.Raw, From: (i + 1) * 1e9, To: (i + 2) * 1e9, Bytes: 3, Values: 2, Pages: 1}
		p.Open = i == 1000
		pairs = append(pairs, p)
	}
	pairs[5].From, pairs[5].To = 0, 0 // one without values
	for limit, want := range map[int]int{1: 1, 10: 10, 500: 334, 1001: 1001, 5000: 1001} {
		list := listPairs("values", pairs, limit)
		count, bytes, values, growing := 0, int64(0), uint64(0), 0
		for i, p := range list {
			count, bytes, values = count+p.Count, bytes+p.Bytes, values+p.Values
			if p.Growing {
				growing++
			}
			if i > 0 && list[i].From != 0 && list[i].From < list[i-1].From {
				t.Errorf("limit %d: %d begins before its predecessor", limit, i)
			}
		}
		if len(list) != want || count != 1001 || bytes != 3003 || values != 2002 || growing != 1 {
			t.Errorf("limit %d: %d shown, expected %d, for %d pairs with %d bytes and %d values, %d growing", limit, len(list), want, count, bytes, values, growing)
		}
		if list[0].From != 1000 || list[len(list)-1].To != 1_002_000 {
			t.Errorf("limit %d: from %d to %d, expected 1000 to 1002000", limit, list[0].From, list[len(list)-1].To)
		}
	}
	if sum := sumTier("values", 7, pairs); sum.Pairs != 1001 || sum.Bytes != 3003 || sum.From != 1000 || sum.To != 1_002_000 {
		t.Errorf("all together are %+v", sum)
	}
}

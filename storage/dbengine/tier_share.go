package dbengine

import (
	"slices"

	"tidemark/storage/dbengine/header"
)

// tierShares are the parts of the quota that the pairs of a tier may take, in percent.
type tierShares [header.TierCount]int

// keepShare deletes the oldest pairs of a tier until it takes no more than its share.
func (db *DB) keepShare(tier header.Tier) {
	flushing := func(swap func()) {
		db.flushing.Lock()
		defer db.flushing.Unlock()
		swap()
	}
	limit := db.space.limit() / 100 * int64(db.o.tierShares[tier])
	for db.o.ShareFactor > 0 && db.pairs.tierBytes(tier) > limit && db.thinOne(db.ctx, tier, flushing) {
	}
	for {
		p := db.pairs.takeOver(tier, limit)
		if p == nil {
			return
		}
		db.o.Logger.Info("delete the oldest pair of a tier that takes more than its share", "tier", tier.String(), "file", p.id.Name())
		db.deletePair(p)
	}
}

// tierBytes is what the pairs of a tier take.
func (ps *pairs) tierBytes(tier header.Tier) int64 {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	total := int64(0)
	for _, p := range ps.list {
		if p.tier == tier {
			p.mu.Lock()
			total += p.charged
			p.mu.Unlock()
		}
	}
	return total
}

// takeOver takes the oldest pair of a tier out of the list if the tier has more bytes than allowed and more than one pair.
func (ps *pairs) takeOver(tier header.Tier, limitBytes int64) *pair {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	total, count, oldest := int64(0), 0, -1
	for i, p := range ps.list {
		if p.tier != tier {
			continue
		}
		if oldest < 0 || p.source < ps.list[oldest].source {
			oldest = i
		}
		p.mu.Lock()
		total += p.charged
		p.mu.Unlock()
		count++
	}
	if total <= limitBytes || count < 2 {
		return nil
	}
	p := ps.list[oldest]
	ps.list = slices.Delete(slices.Clone(ps.list), oldest, oldest+1)
	return p
}

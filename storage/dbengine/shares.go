package dbengine

import (
	"cmp"
	"io"
	"slices"

	"tidemark/model"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
)

// shareRun says to which shares of the disk the items of a run of neighbouring ids belong. Most runs belong to one.
type shareRun struct {
	// all is the share of items that each does not name.
	all  uint64
	each *[shardRun]uint64
}

func (r *shareRun) of(id model.ItemID) uint64 {
	if r.each != nil {
		return r.each[id%shardRun]
	}
	return r.all
}

// setShare says to which share an item belongs, and reports whether that is new; the shard is locked.
func (sh *shard) setShare(id model.ItemID, share uint64) bool {
	r, known := sh.shares[uint64(id/shardRun)]
	switch {
	case known && r.of(id) == share:
		return false
	case !known:
		if share == 0 {
			return false
		}
		r.all = share
	case r.each == nil:
		r.each = new([shardRun]uint64)
		for i := range r.each {
			r.each[i] = r.all
		}
		fallthrough
	default:
		r.each[id%shardRun] = share
	}
	if sh.shares == nil {
		sh.shares = map[uint64]shareRun{}
	}
	sh.shares[uint64(id/shardRun)] = r
	return true
}

// shareOf returns the share of an item; zero if it was not defined.
func (db *DB) shareOf(id model.ItemID) uint64 {
	sh := db.shardOf(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	r := sh.shares[uint64(id/shardRun)]
	return r.of(id)
}

// shareBytes is what a share has of a pair. An extent's bytes count for its pages in equal parts.
type shareBytes struct {
	share uint64
	// bytes are those of all its pages, free those of the pages that can be left out.
	bytes, free int64
}

// shareAccount is what the shares have of a closed pair.
type shareAccount struct {
	// changes is how often the share of an item that pairs may hold had changed before.
	changes int64
	// list is in the order of shares.
	list []shareBytes
	// tried means that leaving pages out of the pair failed, or freed nothing.
	tried bool
}

// freeable are the bytes of the shares that are over.
func (a *shareAccount) freeable(over map[uint64]bool) int64 {
	sum := int64(0)
	for _, s := range a.list {
		if over[s.share] {
			sum += s.free
		}
	}
	return sum
}

// leavable reports whether a page may be left out to make room. The hours beside the values stay if there is no tier of them.
func (db *DB) leavable(tier header.Tier, kind uint8) bool {
	return tier != header.Raw || kind <= extent.Late || db.o.tierShares[header.Hour] > 0
}

// accountOf returns what the shares have of a closed pair, from its index, which is read past the cache.
func (db *DB) accountOf(p *pair) (*shareAccount, error) {
	changes := db.shareChanges.Load()
	if a := p.shares.Load(); a != nil && a.changes == changes {
		return a, nil
	}
	x := p.index.Load()
	if x == nil {
		return nil, errNoIndex
	}
	shares := map[uint64]shareBytes{}
	err := db.withIndex(p, x, func(r io.ReaderAt) error {
		t, err := x.parts.Table(r)
		if err != nil || x.parts.Footer().Blocks == 0 {
			return err
		}
		extents, err := x.parts.Extents(r, t)
		if err != nil {
			return err
		}
		pages := make([]int64, len(extents))
		for _, add := range []bool{false, true} {
			for i := range x.parts.Footer().Blocks {
				b, err := x.parts.Block(r, t, i)
				if err != nil {
					return err
				}
				for k := range b.Pages {
					q := &b.Pages[k]
					switch e := b.Extents[k]; {
					case q.Kind == kindSeals:
					case !add:
						pages[e]++
					default:
						share := db.shareOf(q.Item)
						s, size := shares[share], int64(extents[e].Length)/pages[e]
						if s.bytes += size; db.leavable(p.tier, q.Kind) {
							s.free += size
						}
						shares[share] = s
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	a := &shareAccount{changes: changes}
	for share, s := range shares {
		s.share = share
		a.list = append(a.list, s)
	}
	slices.SortFunc(a.list, func(x, y shareBytes) int { return cmp.Compare(x.share, y.share) })
	p.shares.Store(a)
	return a, nil
}

// shareUse is what the shares have of the closed pairs of a tier.
type shareUse struct {
	// pairs are those that could be read, oldest first, accounts what the shares have of each.
	pairs    []*pair
	accounts []*shareAccount
	shares   map[uint64]int64
	total    int64
}

// sharesOf adds up what the shares have of a tier.
func (db *DB) sharesOf(tier header.Tier) *shareUse {
	u := &shareUse{shares: map[uint64]int64{}}
	db.pairs.mu.Lock()
	for _, p := range db.pairs.list {
		if p.tier == tier && p != db.pairs.open {
			u.pairs = append(u.pairs, p)
		}
	}
	db.pairs.mu.Unlock()
	slices.SortStableFunc(u.pairs, func(a, b *pair) int { return cmp.Compare(a.order(), b.order()) })
	u.pairs = slices.DeleteFunc(u.pairs, func(p *pair) bool {
		a, err := db.accountOf(p)
		if err != nil {
			return true // it was deleted, or its index is damaged, which the next reader mends
		}
		u.accounts = append(u.accounts, a)
		for _, s := range a.list {
			u.shares[s.share] += s.bytes
			u.total += s.bytes
		}
		return false
	})
	return u
}

// over returns the shares that have more than factor times what the others have on average; nil if there are none.
func (u *shareUse) over(factor int) map[uint64]bool {
	var over map[uint64]bool
	others := int64(len(u.shares) - 1)
	for share, size := range u.shares {
		if others > 0 && size*others > int64(factor)*(u.total-size) {
			if over == nil {
				over = map[uint64]bool{}
			}
			over[share] = true
		}
	}
	return over
}

// limit is what a share with so many bytes may have before it is over; zero if nothing is too much.
func (u *shareUse) limit(size int64, factor int) int64 {
	others := int64(len(u.shares) - 1)
	if others < 1 || factor <= 0 {
		return 0
	}
	return int64(factor) * (u.total - size) / others
}

// ShareInfo is what one share has of the disk.
type ShareInfo struct {
	Share uint64 `json:"share"`
	// Bytes is what its values take in file pairs, TierBytes what its summaries do.
	Bytes     int64 `json:"bytes"`
	TierBytes int64 `json:"tier_bytes"`
	// LimitBytes is what its values may take before the oldest of them go ahead of those of others; zero where there is no such bound. Only a running engine
	// says it.
	LimitBytes int64 `json:"limit_bytes,omitempty"`
	// Over means that its oldest values go before those of others, which only a running engine says.
	Over bool `json:"over,omitempty"`
}

// Shares returns the shares that have most of the disk, at most limit of them, and how many there are.
func (db *DB) Shares(limit int) ([]ShareInfo, int) {
	found := map[uint64]*ShareInfo{}
	for tier := range header.Tier(header.TierCount) {
		u := db.sharesOf(tier)
		over := map[uint64]bool{}
		if db.o.ShareFactor > 0 {
			over = u.over(db.o.ShareFactor)
		}
		for share, size := range u.shares {
			if found[share] == nil {
				found[share] = &ShareInfo{Share: share}
			}
			if s := found[share]; tier == header.Raw {
				s.Bytes, s.LimitBytes = size, u.limit(size, db.o.ShareFactor)
			} else {
				s.TierBytes += size
			}
			found[share].Over = found[share].Over || over[share]
		}
	}
	return largestShares(found, limit), len(found)
}

// ShareFactor is how many times what others have on average a share may have before it gives values first; zero for no such bound.
func (db *DB) ShareFactor() int { return max(db.o.ShareFactor, 0) }

// largestShares returns those that have most.
func largestShares(found map[uint64]*ShareInfo, limit int) []ShareInfo {
	list := make([]ShareInfo, 0, len(found))
	for _, s := range found {
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b ShareInfo) int {
		return cmp.Or(cmp.Compare(b.Bytes+b.TierBytes, a.Bytes+a.TierBytes), cmp.Compare(a.Share, b.Share))
	})
	return list[:min(limit, len(list))]
}

package dbengine

import "tidemark/storage/dbengine/header"

// PairInfo is what is known of a file pair without reading it.
type PairInfo struct {
	// Name is that of the datafile.
	Name string
	Tier header.Tier
	// Open says that the pair still grows.
	Open bool
	// From and To bound the times of its values, or of its summaries in a tier, Unix nanoseconds; both zero when it has none.
	From, To int64
	// Bytes is what both files take of the disk space.
	Bytes int64
	// Values counts values; tiers have none. Pages are its pages of any kind.
	Values uint64
	Pages  int64
}

// Pairs lists the file pairs in the order in which they were made.
func (db *DB) Pairs() []PairInfo {
	db.pairs.mu.Lock()
	list, open := append([]*pair(nil), db.pairs.list...), db.pairs.open
	db.pairs.mu.Unlock()
	out := make([]PairInfo, 0, len(list))
	for _, p := range list {
		out = append(out, p.info(p == open))
	}
	return out
}

func (p *pair) info(open bool) PairInfo {
	out := PairInfo{Name: p.id.Name(), Tier: p.tier, Open: open}
	p.mu.Lock()
	out.Bytes, out.Values, out.Pages = p.charged, p.values, p.pageCount
	from, to := p.oldest, p.newestValue
	p.mu.Unlock()
	if p.tier != header.Raw {
		out.Values = 0
		from = minTime
		if x := p.index.Load(); x != nil {
			rows := x.parts.Footer().Summary.RowTimes
			from, to = rows.From, rows.To
		}
	}
	if from != minTime && from <= to {
		out.From, out.To = from, to
	}
	return out
}

// TierLimitBytes is what the pairs of a tier may take of the disk space; values may take all that is left.
func (db *DB) TierLimitBytes(tier header.Tier) int64 {
	if tier == header.Raw {
		return db.o.DiskSpaceBytes
	}
	return db.space.limit() / 100 * int64(db.o.tierShares[tier])
}

// LogBytes is what the log takes of the disk space, and what it may take.
func (db *DB) LogBytes() (used, limit int64) { return db.log.SizeBytes(), db.o.limits.logBytes }

package dbengine

import (
	"slices"

	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/header"
)

const (
	// mergePart is the part of the disk space that a run may take if nobody says how much.
	mergePart = 8
	// mergeFloorBytes is the least that MergeAuto allows.
	mergeFloorBytes = 64 << 20
	// smallPages is the count of values per page from which on there is nothing to gain by merging.
	smallPages = coldPageValues / 2
)

// coldRuns returns what is to be done, youngest first: pairs for themselves, and runs of neighbours that are to become one.
func (db *DB) coldRuns(o *Recompress) (runs [][]*pair) {
	limit := db.mergeLimit(o)
	for _, segment := range db.coldSegments(o) {
		for end := len(segment); end > 0; {
			start := end - 1
			for size := fileBytes(segment[start:end]); start > 0; start-- {
				if size += fileBytes(segment[start-1 : start]); size > limit {
					break
				}
			}
			for start < end-1 && !db.worthMerging(segment[start:end], o) {
				start++
			}
			if run := segment[start:end]; len(run) > 1 || db.anew(run[0], o) {
				runs = append(runs, run)
			}
			end = start
		}
	}
	return runs
}

// mergeLimit is what the files of a run may take together; zero if pairs are not merged.
func (db *DB) mergeLimit(o *Recompress) int64 {
	if o.MergeBytes >= 0 {
		return min(o.MergeBytes, datafile.MaxBytes-1)
	}
	all := int64(0)
	for _, p := range db.pairs.all() {
		if p.tier == header.Raw {
			all += fileBytes([]*pair{p})
		}
	}
	return min(max(min(all, db.space.limit())/mergePart, min(mergeFloorBytes, db.space.limit()/mergePart)), datafile.MaxBytes-1)
}

// coldSegments returns the pairs that may be written anew, oldest first, in stretches that may become one pair each: youngest stretch first. Where a
// tier has summaries of values that are gone it stands between two pairs, and so does a pair that cannot be done.
func (db *DB) coldSegments(o *Recompress) (segments [][]*pair) {
	old := db.o.Now() - int64(o.OlderThan)
	all := db.pairs.all()
	between := func(a, b *pair) bool {
		return slices.ContainsFunc(all, func(p *pair) bool { return p.tier != header.Raw && p.source > a.id.Number && p.source < b.first })
	}
	var last *pair
	for _, p := range all {
		if p.tier != header.Raw {
			continue
		}
		x := p.index.Load()
		if x == nil || x.image != nil || !db.summedUp(p) || p.newestValue == minTime || p.newestValue > old {
			last = nil
			continue
		}
		if last == nil || between(last, p) {
			segments = append(segments, nil)
		}
		at := &segments[len(segments)-1]
		*at, last = append(*at, p), p
	}
	slices.Reverse(segments)
	return segments
}

// anew reports whether a pair is to be written anew for itself.
func (db *DB) anew(p *pair, o *Recompress) bool {
	return (!isCold(p.id.Generation) || o.Again) && !db.wasKept([]*pair{p}, o)
}

// wasKept reports whether a run did not become smaller with this codec.
func (db *DB) wasKept(run []*pair, o *Recompress) bool {
	codec, kept := db.recompression.kept[runName(run)]
	return kept && codec == o.Codec
}

// worthMerging reports whether a run is to become one pair: its pages are small, and no pair is so large that it is mostly that which is written again;
// so a value is written anew some three times while the pair that holds it grows tenfold.
func (db *DB) worthMerging(run []*pair, o *Recompress) bool {
	largest, values, pages := int64(0), uint64(0), 0
	lean := db.mayBeLean(run)
	for _, p := range run {
		if p.thinned() && !lean && db.o.tierShares[header.Hour] > 0 {
			return false // what was left out of it has its hours in the tier, beside those of others in the run
		}
		largest = max(largest, fileBytes([]*pair{p}))
		f := p.index.Load().parts.Footer()
		values, pages = values+f.Summary.Values, pages+f.Pages
	}
	return 2*fileBytes(run) >= 3*largest && values < smallPages*uint64(pages) && !db.wasKept(run, o)
}

// fileBytes is the size of the files of a run.
func fileBytes(run []*pair) (size int64) {
	for _, p := range run {
		size += p.size + p.journalSize
	}
	return size
}

// runName names a run in messages.
func runName(run []*pair) string {
	if len(run) == 1 {
		return run[0].id.Name()
	}
	return run[0].id.Name() + " to " + run[len(run)-1].id.Name()
}

package dbengine

import (
	"slices"

	"tidemark/internal/vfs"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/header"
)

// heads are the headers of the datafiles in a folder that can be read.
type heads map[datafile.ID]header.Header

func readHeads(fsys vfs.FS, dir string, ids []datafile.ID) heads {
	all := make(heads, len(ids))
	for _, id := range ids {
		if h, err := datafile.ReadHeader(fsys, dir, id); err == nil && h.Generation == id.Generation && h.Number == id.Number {
			all[id] = h
		}
	}
	return all
}

// divide tells pairs, which are sorted, from those that were replaced and that a crash left: there is a newer generation of the same number, or that
// stands for a run with the number in it. A datafile has its name only when it is whole.
func (heads heads) divide(ids []datafile.ID) (kept, replaced []datafile.ID) {
	var anew []header.Header
	for id, h := range heads {
		if id.Generation > generation {
			anew = append(anew, h)
		}
	}
	for _, id := range ids {
		h, intact := heads[id]
		gone := slices.ContainsFunc(anew, func(o header.Header) bool {
			if o.Generation <= id.Generation {
				return false
			}
			if o.Number == id.Number {
				return true
			}
			first, last, _ := o.Run()
			return intact && h.Tier == header.Raw && o.Tier == header.Raw && first <= id.Number && id.Number <= last
		})
		if gone {
			replaced = append(replaced, id)
		} else {
			kept = append(kept, id)
		}
	}
	return kept, replaced
}

// growing returns the place of the pair that may have been growing when the engine ended, -1 for none: the newest of values, but for one that was
// written anew or summed up, which is closed even if its index is missing.
func (heads heads) growing(ids []datafile.ID) int {
	newest := -1
	for i, id := range ids {
		if h, intact := heads[id]; !intact || h.Tier == header.Raw {
			newest = i
		}
	}
	if newest < 0 || ids[newest].Generation > generation {
		return -1
	}
	for _, h := range heads {
		if h.Tier != header.Raw && h.Source == ids[newest].Number {
			return -1
		}
	}
	return newest
}

// repeats reports whether a pair of a tier has rows that stand in one of the pairs of values as well.
func (heads heads) repeats(h *header.Header, ids []datafile.ID) bool {
	return slices.ContainsFunc(ids, func(id datafile.ID) bool {
		o, ok := heads[id]
		first, last, _ := o.Run()
		return ok && o.Tier == header.Raw && o.Incompatible&header.Lean == 0 && first <= h.Source && h.Source <= last
	})
}

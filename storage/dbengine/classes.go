package dbengine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
)

const (
	// classPairs and classExtents bound the pairs that Classes looks at, and the extents of each.
	classPairs, classExtents = 16, 128
	// steadyBytes is the most that a column of values takes that stay the same or grow evenly, steadyValues the least that tell it from a short one.
	steadyBytes, steadyValues = 16, 16
)

// ItemClass is a kind of values that compress alike.
type ItemClass struct {
	Type model.ValueType
	// Steady says, of numbers, that they stay the same or grow evenly all through a page.
	Steady bool
}

// ClassUse is what the values of a class take.
type ClassUse struct {
	ItemClass
	Values uint64
	// Bytes are those of the values with their times, and their part of the directories.
	Bytes int64
}

// pairClasses is what was found of a pair that does not change any more.
type pairClasses struct{ list []ClassUse }

// Classes says what values of each class take in closed pairs, those that take most first: counted in pairs and extents that are spread evenly from old to
// new, and reckoned up to all of them. What was read of a pair is remembered.
func (db *DB) Classes(ctx context.Context) ([]ClassUse, error) {
	var closed []*pair
	for _, p := range db.pairs.all() {
		if p.tier == header.Raw && p.index.Load() != nil {
			closed = append(closed, p)
		}
	}
	sum, all, seen := map[ItemClass]ClassUse{}, int64(0), int64(0)
	for _, p := range closed {
		all += p.size
	}
	n := min(len(closed), classPairs)
	for i := range n {
		p := closed[(2*i+1)*len(closed)/(2*n)]
		found, err := db.classesOf(ctx, p)
		if _, damaged := errors.AsType[*storage.CorruptionError](err); damaged || errors.Is(err, errGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		seen += p.size
		for _, u := range found.list {
			s := sum[u.ItemClass]
			sum[u.ItemClass] = ClassUse{ItemClass: u.ItemClass, Values: s.Values + u.Values, Bytes: s.Bytes + u.Bytes}
		}
	}
	return listClasses(sum, float64(all)/float64(max(seen, 1))), nil
}

// listClasses reckons what was seen up to all, and puts what takes most first.
func listClasses(seen map[ItemClass]ClassUse, factor float64) []ClassUse {
	list := make([]ClassUse, 0, len(seen))
	for _, u := range seen {
		u.Values, u.Bytes = uint64(float64(u.Values)*factor+0.5), int64(float64(u.Bytes)*factor+0.5)
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b ClassUse) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Type, b.Type), cmp.Compare(b.Values, a.Values))
	})
	return list
}

// classesOf reads directories of extents that are spread evenly over a pair.
func (db *DB) classesOf(ctx context.Context, p *pair) (*pairClasses, error) {
	if c := p.classes.Load(); c != nil {
		return c, nil
	}
	if !p.acquire() {
		return nil, errGone
	}
	defer p.release()
	f, err := p.files.use(p)
	if err != nil {
		return nil, err
	}
	defer p.files.done(p)
	in := &pairReader{db: db, pair: p, file: f, read: func(int) error { return ctx.Err() }}
	if err := in.locate(); err != nil {
		return nil, err
	}
	sum, all, seen := map[ItemClass]ClassUse{}, int64(0), int64(0)
	for i := range in.places {
		all += int64(in.places[i].Length)
	}
	n := min(len(in.places), classExtents)
	for i := range n {
		e := &in.places[(2*i+1)*len(in.places)/(2*n)]
		d, err := in.directory(e)
		if err != nil {
			return nil, err
		}
		seen += int64(e.Length)
		countClasses(sum, d, int64(e.Length))
	}
	c := &pairClasses{list: listClasses(sum, float64(all)/float64(max(seen, 1)))}
	p.classes.Store(c)
	return c, nil
}

// countClasses adds the pages of values of an extent that takes size bytes on disk. A column of times that pages share counts for each in equal parts, and
// so does the directory.
func countClasses(sum map[ItemClass]ClassUse, d *extent.Directory, size int64) {
	plain, stored := d.PayloadBytes()
	packed := float64(stored) / float64(max(plain, 1))
	each := float64(size-int64(stored)) / float64(max(d.Len(), 1))
	sharers := map[int]int{}
	for i := range d.Len() {
		at, _, _, _ := d.Span(i)
		sharers[at]++
	}
	for i := range d.Len() {
		row := d.Row(i)
		if row.Kind > extent.Late {
			continue
		}
		at, times, _, values := d.Span(i)
		c := ItemClass{Type: row.Type, Steady: row.Type.Numeric() && values <= steadyBytes && row.Count >= steadyValues}
		u := sum[c]
		u.ItemClass, u.Values = c, u.Values+uint64(row.Count)
		u.Bytes += int64((float64(times)/float64(sharers[at])+float64(values))*packed + each + 0.5)
		sum[c] = u
	}
}

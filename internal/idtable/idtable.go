// Package idtable maps ids to values faster than a Go map can: ids are given one after the other, so a page of
// neighbours is one array, and the ids of a batch, which are neighbours too, share its cache lines.
package idtable

// pageBits is the number of low bits of an id that index a page. A page of 256 pointers takes 2 KiB, which is what a lone id
// far from all others costs.
const pageBits = 8

type page[T any] struct {
	used   int
	values [1 << pageBits]*T
}

// Table maps ids to pointers. The zero value is empty and ready. It is not safe for concurrent writes.
type Table[K ~uint64, T any] struct {
	pages map[K]*page[T]
	size  int
}

// Len returns the number of ids.
func (t *Table[K, T]) Len() int { return t.size }

// Get returns the value of an id, nil when there is none.
func (t *Table[K, T]) Get(id K) *T {
	p := t.pages[id>>pageBits]
	if p == nil {
		return nil
	}
	return p.values[id&(1<<pageBits-1)]
}

// Set gives an id a value; nil removes it.
func (t *Table[K, T]) Set(id K, v *T) {
	if t.pages == nil {
		t.pages = make(map[K]*page[T])
	}
	p := t.pages[id>>pageBits]
	if p == nil {
		if v == nil {
			return
		}
		p = new(page[T])
		t.pages[id>>pageBits] = p
	}
	place := &p.values[id&(1<<pageBits-1)]
	if *place == nil && v != nil {
		p.used++
		t.size++
	}
	if *place != nil && v == nil {
		p.used--
		t.size--
	}
	*place = v
	if p.used == 0 {
		delete(t.pages, id>>pageBits)
	}
}

// Each calls fn for every id that has a value, in no order, until it returns false. fn may remove the id that it is called with.
func (t *Table[K, T]) Each(fn func(id K, v *T) bool) {
	for key, p := range t.pages {
		for i, v := range p.values {
			if v != nil && !fn(key<<pageBits|K(i), v) {
				return
			}
		}
	}
}

// Cursor reads a table whose ids mostly come in runs of neighbours. It serves one goroutine, and only while the table
// is not written.
type Cursor[K ~uint64, T any] struct {
	table *Table[K, T]
	key   K
	page  *page[T]
}

// Cursor returns a cursor.
func (t *Table[K, T]) Cursor() Cursor[K, T] { return Cursor[K, T]{table: t, key: ^K(0)} }

// Get returns the value of an id, nil when there is none.
func (c *Cursor[K, T]) Get(id K) *T {
	if key := id >> pageBits; key != c.key {
		c.key, c.page = key, c.table.pages[key]
	}
	if c.page == nil {
		return nil
	}
	return c.page.values[id&(1<<pageBits-1)]
}

package catalog

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"tidemark/model"
)

// entry is one item in memory. Texts are numbers of symbols, labels a number of sets.
type entry struct {
	id   model.ItemID
	host *host
	// seenAt is when a declared item was last declared, Unix seconds; Expire counts from it until a value came.
	// Atomic, because a declaration that changes nothing holds mu for reading only.
	seenAt                        uint32
	hostName, key, metric, name   uint32
	units, help, set              uint32
	intervalMillis, silenceMillis uint32
	kind                          model.ItemKind
	valueType                     model.ValueType
	// series: the labels are whole, see IsSeries.
	series, dead bool
}

// host is one host and its items by the symbol of their key.
//
// Posting lists are kept under the symbol of the host's name that the entry itself holds, so a host may be renamed or
// dropped while dead entries of it remain.
type host struct {
	id       model.HostID
	name     uint32
	items    map[uint32]uint32
	declared int
	// shapeItems are those of the declared ones that are of MongoDB shapes.
	shapeItems int
	// series are those of the declared ones that are series.
	series int
}

// definition is an item on its way into the index or the log.
type definition struct {
	id        model.ItemID
	hostID    model.HostID
	host      string
	key       string
	metric    string
	name      string
	units     string
	help      string
	labels    model.Labels
	interval  time.Duration
	silence   time.Duration
	kind      model.ItemKind
	valueType model.ValueType
	seenAt    uint32
}

// chunkEntries is the size of the pieces in which entries are allocated, so that growing never copies them all.
const chunkEntries = 1 << 12

// index holds the tables. Entries are numbered in the order of arrival and never move but in sweep, so posting lists
// are sorted by construction. A removed or changed entry is marked dead and stays in the posting lists until then.
type index struct {
	symbols *symbols
	// sets holds label sets, packed as pairs of little-endian uint32 symbols (name, value) sorted by name.
	sets   *symbols
	chunks [][]entry
	count  uint32
	dead   int

	byID   map[model.ItemID]uint32
	hosts  map[model.HostID]*host
	byName map[string]*host
	// postings: symbol of the label name → symbol of the value → entries. Only numeric items are in it.
	postings map[uint32]map[uint32][]uint32
	// The symbols of the three labels that every item has.
	metricName, hostName, keyName uint32
}

func newIndex() *index {
	x := &index{
		symbols: newSymbols(), sets: newSymbols(),
		byID:   make(map[model.ItemID]uint32),
		hosts:  make(map[model.HostID]*host),
		byName: make(map[string]*host), postings: make(map[uint32]map[uint32][]uint32),
	}
	x.metricName = x.symbols.acquire(metricNameLabel)
	x.hostName = x.symbols.acquire("host")
	x.keyName = x.symbols.acquire("key")
	return x
}

func (x *index) at(i uint32) *entry { return &x.chunks[i/chunkEntries][i%chunkEntries] }

// host returns the host with this id, made or renamed as needed. An empty name keeps the one that is known.
func (x *index) host(id model.HostID, name string) *host {
	h := x.hosts[id]
	if h == nil {
		h = &host{id: id, name: x.symbols.acquire(name), items: make(map[uint32]uint32)}
		x.hosts[id] = h
		if name != "" {
			x.byName[x.symbols.text[h.name]] = h
		}
		return h
	}
	old := x.symbols.text[h.name]
	if name == "" || old == name {
		return h
	}
	if x.byName[old] == h {
		delete(x.byName, old)
	}
	moved := make([]definition, 0, len(h.items))
	for _, i := range h.items {
		d := x.record(x.at(i))
		d.host = name
		moved = append(moved, d)
		x.kill(i)
	}
	x.symbols.release(h.name)
	h.name = x.symbols.acquire(name)
	x.byName[x.symbols.text[h.name]] = h
	slices.SortFunc(moved, func(a, b definition) int { return compareIDs(a.id, b.id) })
	for i := range moved {
		x.add(h, &moved[i])
	}
	return h
}

func compareIDs(a, b model.ItemID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// add enters an item. Neither its id nor its key may be in use on the host.
func (x *index) add(h *host, d *definition) uint32 {
	i := x.count
	if int(i/chunkEntries) == len(x.chunks) {
		x.chunks = append(x.chunks, make([]entry, chunkEntries))
	}
	x.count++
	e := x.at(i)
	*e = entry{
		id: d.id, host: h, seenAt: d.seenAt, kind: d.kind, valueType: d.valueType,
		hostName: x.symbols.acquire(x.symbols.text[h.name]),
		key:      x.symbols.acquire(d.key), metric: x.symbols.acquire(d.metric), name: x.symbols.acquire(d.name),
		units: x.symbols.acquire(d.units), help: x.symbols.acquire(d.help), set: x.acquireSet(d.labels),
		intervalMillis: millis(d.interval), silenceMillis: millis(d.silence),
		series: d.kind == model.Declared && IsSeries(d.key),
	}
	x.byID[d.id] = i
	h.items[e.key] = i
	if d.kind == model.Declared {
		h.declared++
		if isShapeItem(d.key) {
			h.shapeItems++
		}
		if e.series {
			h.series++
		}
	}
	if !d.valueType.Numeric() {
		return i
	}
	x.post(x.metricName, e.metric, i)
	if !e.series {
		x.post(x.hostName, e.hostName, i)
		x.post(x.keyName, e.key, i)
	}
	for pairs := x.sets.text[e.set]; pairs != ""; pairs = pairs[8:] {
		name, value := pair(pairs)
		x.post(name, value, i)
	}
	return i
}

// millis bounds a duration to what an entry can keep (49 days).
func millis(d time.Duration) uint32 {
	return uint32(min(max(d/time.Millisecond, 0), 1<<32-1))
}

func (x *index) post(name, value, i uint32) {
	values := x.postings[name]
	if values == nil {
		values = make(map[uint32][]uint32)
		x.postings[name] = values
	}
	values[value] = append(values[value], i)
}

// kill takes an entry out of every table but the posting lists.
func (x *index) kill(i uint32) {
	e := x.at(i)
	e.dead = true
	x.dead++
	delete(x.byID, e.id)
	if e.host.items[e.key] == i {
		delete(e.host.items, e.key)
	}
	if e.kind == model.Declared {
		e.host.declared--
		if isShapeItem(x.symbols.text[e.key]) {
			e.host.shapeItems--
		}
		if e.series {
			e.host.series--
		}
	}
}

// isShapeItem reports whether a key is that of a MongoDB shape. They are bounded apart: what clients ask of a database must not leave the
// machine's own items without room.
func isShapeItem(key string) bool { return strings.HasPrefix(key, "mongo.shape[") }

// acquireSet packs labels and returns the number of the set.
func (x *index) acquireSet(labels model.Labels) uint32 {
	if len(labels) == 0 {
		return 0
	}
	packed := make([]byte, 0, 8*len(labels))
	for _, l := range labels {
		packed = binary.LittleEndian.AppendUint32(packed, x.symbols.acquire(l.Name))
		packed = binary.LittleEndian.AppendUint32(packed, x.symbols.acquire(l.Value))
	}
	known := x.sets.findBytes(packed) != noSymbol
	n := x.sets.acquire(string(packed))
	if known {
		x.releasePairs(x.sets.text[n])
	}
	return n
}

func (x *index) releaseSet(n uint32) {
	pairs := x.sets.text[n]
	if x.sets.release(n) {
		x.releasePairs(pairs)
	}
}

func (x *index) releasePairs(pairs string) {
	for ; pairs != ""; pairs = pairs[8:] {
		name, value := pair(pairs)
		x.symbols.release(name)
		x.symbols.release(value)
	}
}

// pair reads the first name and value of a packed set.
func pair(pairs string) (name, value uint32) {
	b := pairs[:8]
	name = uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
	value = uint32(b[4]) | uint32(b[5])<<8 | uint32(b[6])<<16 | uint32(b[7])<<24
	return name, value
}

// labels returns the item's own labels, without name, host and key.
func (x *index) labels(e *entry) model.Labels {
	pairs := x.sets.text[e.set]
	if pairs == "" {
		return nil
	}
	ls := make(model.Labels, 0, len(pairs)/8)
	for ; pairs != ""; pairs = pairs[8:] {
		name, value := pair(pairs)
		ls = append(ls, model.Label{Name: x.symbols.text[name], Value: x.symbols.text[value]})
	}
	return ls
}

// record is the opposite of add.
func (x *index) record(e *entry) definition {
	s := x.symbols.text
	return definition{
		id: e.id, hostID: e.host.id, host: s[e.hostName], key: s[e.key], metric: s[e.metric], name: s[e.name],
		units: s[e.units], help: s[e.help], labels: x.labels(e), kind: e.kind, valueType: e.valueType, seenAt: e.seenAt,
		interval: time.Duration(e.intervalMillis) * time.Millisecond,
		silence:  time.Duration(e.silenceMillis) * time.Millisecond,
	}
}

// view is the public form of an entry.
func (x *index) view(e *entry) model.Entry {
	s := x.symbols.text
	v := model.Entry{
		ID: e.id, HostID: e.host.id, Host: s[e.hostName], Key: s[e.key], Metric: s[e.metric], Name: s[e.name],
		Units: s[e.units], Help: s[e.help], Kind: e.kind, ValueType: e.valueType,
		Interval: time.Duration(e.intervalMillis) * time.Millisecond,
		Silence:  time.Duration(e.silenceMillis) * time.Millisecond,
	}
	if !e.valueType.Numeric() {
		v.Metric = ""
	}
	return v
}

// sweepIfWorth frees dead entries when they are a quarter of all.
func (x *index) sweepIfWorth() {
	if x.dead >= 1024 && x.dead*4 >= int(x.count) {
		x.sweep()
	}
}

// sweep drops dead entries, moves the rest together in their order, and puts every table right.
func (x *index) sweep() {
	moved := make([]uint32, x.count)
	old, count := x.chunks, x.count
	x.chunks, x.count, x.dead = nil, 0, 0
	for i := range count {
		e := &old[i/chunkEntries][i%chunkEntries]
		if e.dead {
			moved[i] = noSymbol
			x.releaseEntry(e)
			continue
		}
		if int(x.count/chunkEntries) == len(x.chunks) {
			x.chunks = append(x.chunks, make([]entry, chunkEntries))
		}
		*x.at(x.count) = *e
		x.byID[e.id] = x.count
		e.host.items[e.key] = x.count
		moved[i] = x.count
		x.count++
		if i%chunkEntries == chunkEntries-1 {
			old[i/chunkEntries] = nil
		}
	}
	for name, values := range x.postings {
		for value, list := range values {
			if list = renumber(list, moved); len(list) == 0 {
				delete(values, value)
			} else {
				values[value] = list
			}
		}
		if len(values) == 0 {
			delete(x.postings, name)
		}
	}
}

func (x *index) releaseEntry(e *entry) {
	for _, n := range [...]uint32{e.hostName, e.key, e.metric, e.name, e.units, e.help} {
		x.symbols.release(n)
	}
	x.releaseSet(e.set)
}

// renumber drops what is gone and gives the rest their new numbers, in place; a list that became small is copied.
func renumber(list, moved []uint32) []uint32 {
	kept := list[:0]
	for _, i := range list {
		if n := moved[i]; n != noSymbol {
			kept = append(kept, n)
		}
	}
	if cap(kept) > 2*len(kept)+4 {
		kept = slices.Clone(kept)
	}
	return kept
}

package dbengine

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/translog"
)

// appending is the room that one Append needs; it is used again.
type appending struct {
	encoder translog.Encoder
	record  []byte
	// rows are those that are stored, decimals what the log needs of each.
	rows     []int32
	decimals translog.Decimals
	full     []*series
	stats    appended
	// since counts the rows of appends since one let others run.
	since int
}

// yieldRows is after how many rows, about a millisecond of a processor, an Append lets others run.
const yieldRows = 1 << 14

// appended counts what became of values.
type appended struct{ stored, duplicate, late, moved, expired, bytes int }

var appendings = sync.Pool{New: func() any { return new(appending) }}

// Append stores the values of b. See storage.Engine.
func (db *DB) Append(ctx context.Context, b *model.Batch) (model.LSN, error) {
	m, err := measure(b)
	if err != nil {
		return 0, err
	}
	if err := db.admit(ctx, m.logBytes); err != nil {
		return 0, err
	}
	newest := db.newest.Load()
	if m.oldest < newest-recentNanos {
		db.warm(b)
	}
	for m.newest > newest && !db.newest.CompareAndSwap(newest, m.newest) {
		newest = db.newest.Load()
	}
	mask := m.shards
	a := appendings.Get().(*appending)
	a.stats = appended{}
	db.lockShards(mask)
	if db.shards[0].closedFor(mask, db) {
		db.unlockShards(mask)
		return 0, storage.ErrClosed
	}
	before := db.log.End()
	a.grow(b.Len())
	a.full = a.full[:0]
	db.placeRows(a, b, before)
	lsn := db.logRows(a, b)
	now := int64(0)
	for _, s := range a.full {
		if s.unsealed() && db.full(s) {
			if now == 0 {
				now = db.o.Now()
			}
			db.detach(s, lsn, now)
		}
	}
	db.unlockShards(mask)
	done := append([]*model.Completion(nil), b.Done...)
	clear(b.Done)
	b.Done = b.Done[:0]
	db.log.Notify(lsn, done)
	db.m.appended(&a.stats)
	db.hotBytes.Add(int64(a.stats.bytes))
	db.values.Add(int64(a.stats.stored))
	clear(a.full)
	a.yield(b.Len())
	return lsn, nil
}

// yield gives a back and lets others run from time to time. Who appends without a break would else be stopped by the scheduler after ten milliseconds, nearly
// always while it holds shards, and readers would wait for its next turn.
func (a *appending) yield(rows int) {
	a.since += rows
	long := a.since >= yieldRows
	if long {
		a.since = 0
	}
	appendings.Put(a)
	if long {
		runtime.Gosched()
	}
}

// grow makes room for n rows.
func (a *appending) grow(n int) {
	if cap(a.rows) < n {
		a.rows, a.decimals.Places, a.decimals.Integers = make([]int32, n), make([]uint8, n), make([]uint64, n)
	}
	a.rows, a.decimals.Places, a.decimals.Integers = a.rows[:n], a.decimals.Places[:n], a.decimals.Integers[:n]
}

// closedFor reports whether one of the shards in the mask is closed, or any if the mask is empty.
func (*shard) closedFor(mask uint32, db *DB) bool {
	for i := range db.shards {
		if mask&(1<<i) != 0 {
			return db.shards[i].closed
		}
	}
	return db.ctx.Err() != nil
}

// measured is what a batch needs: the shards that it touches, the most log bytes, the bounds of its times.
type measured struct {
	shards         uint32
	logBytes       int
	oldest, newest int64
}

// measure checks the rows of a batch.
func measure(b *model.Batch) (m measured, err error) {
	n := b.Len()
	m.oldest, m.newest = math.MaxInt64, math.MinInt64
	if len(b.At) != n || len(b.Types) != n || len(b.Bits) != n || len(b.Flags) != n {
		return m, fmt.Errorf("append: columns of %d items, %d times, %d types, %d values, %d flags, expected equal lengths",
			n, len(b.At), len(b.Types), len(b.Bits), len(b.Flags))
	}
	arena := 0
	for i, t := range b.Types {
		if b.Items[i] == 0 {
			return m, fmt.Errorf("append: value %d has item 0, which is no item", i)
		}
		m.shards |= 1 << shardIndex(b.Items[i])
		m.oldest, m.newest = min(m.oldest, b.At[i]), max(m.newest, b.At[i])
		if !t.InArena() || t == model.Raw || t == model.Unsupported {
			continue
		}
		if t > model.Binary {
			return m, fmt.Errorf("append: value %d of item %d has type %d, which no engine stores", i, b.Items[i], t)
		}
		offset, length := b.Bits[i]>>32, b.Bits[i]&0xFFFFFFFF
		if offset+length > uint64(len(b.Arena)) {
			return m, fmt.Errorf("append: value %d of item %d reaches past the arena of %d bytes", i, b.Items[i], len(b.Arena))
		}
		if length > model.MaxTextBytes {
			return m, fmt.Errorf("append: value %d of item %d has %d bytes, expected at most %d", i, b.Items[i], length, model.MaxTextBytes)
		}
		arena += int(length)
	}
	for _, mark := range b.Marks {
		if mark.Key == "" || len(mark.Key) > 255 || len(mark.Value) > 255 {
			return m, fmt.Errorf("append: mark %q has a key of %d and a value of %d bytes, expected 1 and 0 to 255", mark.Key, len(mark.Key), len(mark.Value))
		}
	}
	m.logBytes = n*translog.RowBytes + arena + len(b.Marks)*translog.MarkBytes + 1024
	return m, nil
}

// placeRows puts the rows into their series, sets their flags, and notes in a.rows which of them were stored.
func (db *DB) placeRows(a *appending, b *model.Batch, before model.LSN) {
	limits := db.o.limits
	now := db.o.Now()
	oldest := db.oldest(now)
	var s *series
	var near *run // that of s
	var sh *shard
	n := 0
	rows, places, integers := a.rows, a.decimals.Places, a.decimals.Integers
	for i, id := range b.Items {
		t := b.Types[i]
		if t > model.Binary {
			continue
		}
		if s == nil || s.id != id {
			if s == nil || s.id/shardRun != id/shardRun {
				sh = db.shardOf(id)
				near = sh.run(id)
			}
			s = near.get(sh, id)
		}
		at := b.At[i]
		rows[n] = int32(i)
		if at > s.newest && s.page.count > 0 && t == s.valueType && at >= oldest[s.class] { // nearly always
			sh.tick(&s.page, at)
			s.page.push(t, b.Bits[i])
			s.newest = at
			places[n], integers[n] = s.page.scale, s.page.last
			n++
			if int(s.page.count) >= limits.pageValues/2 && db.full(s) {
				a.full = append(a.full, s)
			}
			continue
		}
		if db.placeOther(a, b, i, s, before, now, oldest) {
			places[n] = 0
			n++
		}
	}
	a.rows, a.decimals.Places, a.decimals.Integers = rows[:n], places[:n], integers[:n]
	a.stats.stored += n
	a.stats.bytes += 16 * n
}

// placeOther is what placeRows does for rows that are not just the next number of their series.
// It reports whether the row was stored.
func (db *DB) placeOther(a *appending, b *model.Batch, i int, s *series, before model.LSN, now int64, oldest *[MaxClasses]int64) bool {
	v := value{at: b.At[i], bits: b.Bits[i], valueType: b.Types[i]}
	if v.valueType.InArena() {
		v.text = b.Bytes(i)
	}
	if v.at < oldest[s.class] {
		b.Flags[i] |= model.Expired
		a.stats.expired++
		return false
	}
	flag := db.place(s, &v, before, now)
	b.Flags[i] |= flag
	if flag&model.Duplicate != 0 {
		a.stats.duplicate++
		return false
	}
	b.At[i] = v.at
	a.stats.count(flag)
	a.stats.bytes += len(v.text)
	if db.full(s) {
		a.full = append(a.full, s)
	}
	return true
}

func (c *appended) count(f model.Flag) {
	if f&model.Late != 0 {
		c.late++
	}
	if f&model.Moved != 0 {
		c.moved++
	}
}

// oldest returns, for each class, the time before which values are expired.
func (db *DB) oldest(now int64) *[MaxClasses]int64 {
	var times [MaxClasses]int64
	classes := *db.kept.Load()
	for i := range times {
		times[i] = minTime
		if i < len(classes) && classes[i].History > 0 {
			times[i] = now - int64(classes[i].History)
		}
	}
	return &times
}

// full reports whether the hot page of a series must be sealed.
func (db *DB) full(s *series) bool {
	l := db.o.limits
	if l.pageValues/2 <= int(s.page.count) && 4*l.pageValues <= int(s.page.end) { // wide numbers take no more room than others
		return true
	}
	return s.count() >= l.pageValues || len(s.rest().arena) >= l.pageBytes
}

// place puts a value into its series; the shard is locked. It returns the flags that the value gets, and sets v.at to where
// it was stored.
func (db *DB) place(s *series, v *value, before model.LSN, now int64) model.Flag {
	if !s.known {
		db.learn(s)
	}
	if v.at > s.newest {
		db.pushNewest(s, v, before, now)
		return 0
	}
	flag := model.Flag(0)
	if v.at < s.newest {
		flag = model.Late
	}
	from := v.at
	if db.makeWay(s, v) {
		return model.Duplicate
	}
	if v.at > s.newest { // moved past the end
		db.pushNewest(s, v, before, now)
		return model.Moved
	}
	if v.at != from {
		flag |= model.Moved
	}
	db.begin(s, v.valueType, before, now)
	s.insert(v)
	if v.valueType.Numeric() {
		db.trendOf(s).correct(v.at, v.valueType)
	}
	return flag
}

// begin makes the series ready for a value that its hot page does not hold yet.
func (db *DB) begin(s *series, t model.ValueType, before model.LSN, now int64) {
	if s.unsealed() {
		if s.valueType == t {
			return
		}
		db.detach(s, before, now) // a page has one type
	}
	s.valueType, s.logFrom, s.since = t, before, now
}

// pushNewest appends a value that is later than all others of its series.
func (db *DB) pushNewest(s *series, v *value, before model.LSN, now int64) {
	db.begin(s, v.valueType, before, now)
	if v.valueType.InArena() {
		s.pushText(v)
	} else {
		if s.trend == nil {
			db.trendOf(s)
		}
		db.shardOf(s.id).tick(&s.page, v.at)
		s.page.push(v.valueType, v.bits)
	}
	s.newest = v.at
}

// lookup looks for the stored value of an instant. Its text is good until the shard is unlocked or another page is looked at.
func (db *DB) lookup(s *series, at int64) (v value, found bool) {
	o := s.rest()
	if p, ok := find(o.late, at); ok {
		return storedValue(s.valueType, p, o.arena), true
	}
	if at > s.floor {
		return lookupMemory(&numbersOrTexts{s.page.freeze(), o.texts}, s.valueType, o.arena, at)
	}
	for d := s.dirty; d != nil; d = d.next {
		if p, ok := find(d.late, at); ok {
			return storedValue(d.valueType, p, d.arena), true
		}
		if v, found = lookupMemory(&numbersOrTexts{d.numbers, d.texts}, d.valueType, d.arena, at); found {
			return v, true
		}
	}
	return db.lookupPages(s, at)
}

type numbersOrTexts struct {
	numbers numbers
	texts   []sample
}

func lookupMemory(m *numbersOrTexts, t model.ValueType, arena []byte, at int64) (v value, found bool) {
	if p, ok := find(m.texts, at); ok {
		return storedValue(t, p, arena), true
	}
	if bits, ok := m.numbers.at(at); ok {
		return value{at: at, bits: bits, valueType: t}, true
	}
	return value{}, false
}

// detach seals a series and hands its page to the flusher; the shard is locked.
func (db *DB) detach(s *series, lsn model.LSN, now int64) {
	if s.page.count > 0 {
		db.trendOf(s)
	}
	d := s.detach(lsn, now)
	sh := db.shardOf(s.id)
	sh.dirty = append(sh.dirty, d)
	db.dirtyBytes.Add(d.size)
	if db.dirtyBytes.Load() >= db.o.limits.dirtyBytes {
		db.poke()
	}
}

// logRows writes the stored rows and the marks to the log, and returns the LSN behind them.
func (db *DB) logRows(a *appending, b *model.Batch) model.LSN {
	if len(b.Marks) > 0 {
		db.marks.mu.Lock()
		defer db.marks.mu.Unlock()
	}
	marks := b.Marks
	lsn := db.log.End()
	rows, decimals := a.rows, a.decimals
	for len(rows) > 0 || len(marks) > 0 {
		n, m := 0, min(len(marks), translog.MaxMarks)
		for arena := 0; n < min(len(rows), translog.MaxRows); n++ {
			if b.Types[rows[n]].InArena() {
				if arena += int(b.Bits[rows[n]] & 0xFFFFFFFF); arena > translog.MaxArenaBytes {
					break
				}
			}
		}
		if n < len(rows) {
			m = 0 // marks come with the last values, so that they never promise more than is there
		}
		a.record = a.encoder.AppendBatch(a.record[:0], b, rows[:n], &translog.Decimals{Places: decimals.Places[:n], Integers: decimals.Integers[:n]}, marks[:m])
		lsn = db.log.Append(translog.KindBatch, a.record)
		db.marks.put(marks[:m])
		rows, marks = rows[n:], marks[m:]
		decimals.Places, decimals.Integers = decimals.Places[n:], decimals.Integers[n:]
	}
	return lsn
}

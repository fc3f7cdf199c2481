package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"tidemark/model"
)

// Declaration is an item that somebody saw for the first time, or describes again.
type Declaration struct {
	// Key is the item key, or for metrics the text of the series; 1 to 2048 characters of UTF-8.
	Key string
	// Metric is the metric's own name; empty derives it from Key (see MetricName).
	Metric string
	// Name is for people; empty is shown as the key.
	Name  string
	Units string
	Help  string
	// ValueType is Float, Uint or one of the stored text types.
	ValueType model.ValueType
	// Labels are at most 64 with 16 KiB in all; "type" says counter or gauge. They get the names that LabelName gives.
	Labels model.Labels
	// Interval is the time between values; zero when not known.
	Interval time.Duration
}

// RefusedError says which declarations were not taken. The others of the same call are in place.
type RefusedError struct {
	Host string
	// OverLimit and Invalid count the refused declarations.
	OverLimit, Invalid int
	// Limit is the number of declared items that a host may have.
	Limit int
	// First says what was wrong with the first invalid one.
	First string
}

// Error names the host, the limit and the first mistake.
func (e *RefusedError) Error() string {
	text := fmt.Sprintf("host %q:", e.Host)
	if e.OverLimit > 0 {
		text += fmt.Sprintf(" %d items are over the limit of %d declared items per host, or of those of MongoDB shapes", e.OverLimit, e.Limit)
	}
	if e.Invalid > 0 {
		text += fmt.Sprintf(" %d items have no valid declaration, the first: %s", e.Invalid, e.First)
	}
	return text
}

// Declare makes sure that the items exist on the host and returns them in the order of decls, with how many are new.
// An item that exists with the key, also a configured one, is returned as it is; a declared one takes over changed
// types, labels, units and texts. What is new or changed is in the log and synced when Declare returns.
//
// A *RefusedError comes with the other items in place: refused ones have ID 0. Any other error means that the log could
// not be written and nothing of the call counts.
func (c *Catalog) Declare(ctx context.Context, hostID model.HostID, hostName string, decls []Declaration) ([]model.Entry, int, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	refused := &RefusedError{Host: hostName, Limit: c.options.MaxDeclared}
	wanted := make([]definition, len(decls))
	now := uint32(time.Now().Unix())
	for i := range decls {
		d, wrong := define(hostID, hostName, &decls[i], now)
		if wrong != "" {
			if refused.Invalid++; refused.Invalid == 1 {
				refused.First = wrong
			}
			continue
		}
		wanted[i] = d
	}
	entries := make([]model.Entry, len(decls))
	if c.fill(hostID, wanted, entries, true) {
		return entries, 0, c.refusal(refused)
	}
	c.writer.Lock()
	defer c.writer.Unlock()
	changed, err := c.plan(hostID, wanted, refused)
	if err != nil {
		return nil, 0, fmt.Errorf("declare items of host %q: %w", hostName, err)
	}
	created := c.enter(hostID, hostName, changed)
	c.fill(hostID, wanted, entries, false)
	c.compact()
	return entries, created, c.refusal(refused)
}

// refusal counts refused declarations and returns the error for them, or nil.
func (c *Catalog) refusal(e *RefusedError) error {
	if e.OverLimit+e.Invalid == 0 {
		return nil
	}
	c.counters.refused.Add(e.OverLimit + e.Invalid)
	return e
}

// define checks a declaration and gives it the form of the index.
func define(hostID model.HostID, host string, decl *Declaration, now uint32) (definition, string) {
	d := definition{
		hostID: hostID, host: host, key: decl.Key, metric: decl.Metric, name: decl.Name, units: decl.Units,
		help: cut(decl.Help, maxHelpBytes), interval: decl.Interval.Truncate(time.Millisecond),
		kind: model.Declared, valueType: decl.ValueType, seenAt: now,
	}
	d.silence = d.interval
	switch {
	case hostID == 0 || len(host) > maxHostBytes:
		return d, fmt.Sprintf("the host has id %d and a name of %d bytes, expected an id and at most %d bytes", hostID, len(host), maxHostBytes)
	case d.key == "" || utf8.RuneCountInString(d.key) > 2048 || !utf8.ValidString(d.key):
		return d, fmt.Sprintf("the key %.40q has %d bytes, expected 1 to 2048 characters of UTF-8", d.key, len(d.key))
	case d.valueType > model.Binary:
		return d, fmt.Sprintf("the key %.40q has the value type %d, expected one that is stored", d.key, d.valueType)
	case len(d.name) > maxNameBytes || len(d.metric) > maxNameBytes || len(d.units) > maxUnitsBytes:
		return d, fmt.Sprintf("the key %.40q has a name or units that are too long", d.key)
	case len(decl.Labels) > maxLabels:
		return d, fmt.Sprintf("the key %.40q has %d labels, expected at most %d", d.key, len(decl.Labels), maxLabels)
	case d.interval < 0 || d.interval >= 1<<32*time.Millisecond:
		return d, fmt.Sprintf("the key %.40q has the interval %v, expected 0 to 49 days", d.key, d.interval)
	}
	if d.metric == "" {
		d.metric = MetricName(d.key)
	}
	labelBytes := 0
	for _, l := range decl.Labels {
		labelBytes += len(l.Name) + len(l.Value)
		if len(l.Name) > maxLabelName-len("exported_") || labelBytes > maxLabelBytes || !utf8.ValidString(l.Value) {
			return d, fmt.Sprintf("the key %.40q: label %.40q is too long or no UTF-8, or the labels have more than %d bytes together", d.key, l.Name, maxLabelBytes)
		}
	}
	if IsSeries(d.key) {
		if d.labels = wholeLabels(decl.Labels); d.labels == nil {
			return d, fmt.Sprintf("the key %.40q: its labels are not sorted by name, each once, with a value", d.key)
		}
		return d, ""
	}
	d.labels = cleanLabels(decl.Labels, nil)
	return d, ""
}

// cut shortens a text to at most n bytes, between characters.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// fill gives entries the items that exist and reports whether all wanted ones do. When strict, an item that would
// change counts as not existing.
func (c *Catalog) fill(hostID model.HostID, wanted []definition, entries []model.Entry, strict bool) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	h := c.index.hosts[hostID]
	all := true
	for i := range wanted {
		d := &wanted[i]
		if d.key == "" {
			continue
		}
		e := c.index.byKey(h, d.key)
		if e == nil || strict && !c.index.same(e, d) {
			all = false
			continue
		}
		atomic.StoreUint32(&e.seenAt, d.seenAt)
		entries[i] = c.index.view(e)
	}
	return all
}

// plan decides what must be logged, logs it, and returns it. The caller holds writer, so nothing changes meanwhile.
func (c *Catalog) plan(hostID model.HostID, wanted []definition, refused *RefusedError) ([]*definition, error) {
	changed, fresh := c.compare(hostID, wanted, refused)
	if len(changed) == 0 {
		return nil, nil
	}
	if fresh > 0 {
		if err := c.reserve(fresh); err != nil {
			return nil, err
		}
	}
	next := c.nextID
	payloads := make([][]byte, 0, len(changed))
	for _, d := range changed {
		if d.id == 0 {
			d.id = next
			next++
		}
		payloads = append(payloads, appendDeclare(nil, *d))
	}
	if err := c.append(payloads...); err != nil {
		return nil, err
	}
	c.nextID = next
	return changed, nil
}

// compare finds the wanted items that are new (id 0) or differ from what is known, and counts the new ones.
func (c *Catalog) compare(hostID model.HostID, wanted []definition, refused *RefusedError) (changed []*definition, fresh int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	h := c.index.hosts[hostID]
	// What programs expose must leave the machine's own items room, as shapes must.
	room, shapeRoom, seriesRoom := c.options.MaxDeclared, c.options.MaxShapeItems, c.options.MaxDeclared
	if h != nil {
		room -= h.declared - h.shapeItems - h.series
		shapeRoom -= h.shapeItems
		seriesRoom -= h.series
	}
	seen := make(map[string]bool)
	for i := range wanted {
		d := &wanted[i]
		if d.key == "" || seen[d.key] {
			continue
		}
		e := c.index.byKey(h, d.key)
		left := &room
		switch {
		case isShapeItem(d.key):
			left = &shapeRoom
		case IsSeries(d.key):
			left = &seriesRoom
		}
		switch {
		case e != nil && c.index.same(e, d):
			continue
		case e != nil:
			d.id = e.id
		case *left <= 0:
			refused.OverLimit++
			continue
		default:
			*left--
			fresh++
		}
		seen[d.key] = true
		changed = append(changed, d)
	}
	return changed, fresh
}

// enter puts logged definitions into the index and returns how many are new.
func (c *Catalog) enter(hostID model.HostID, hostName string, changed []*definition) (created int) {
	if len(changed) == 0 {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.index.host(hostID, hostName)
	for _, d := range changed {
		if i, ok := c.index.byID[d.id]; ok {
			c.index.kill(i)
			c.counters.updated.Inc()
		} else {
			created++
			c.declared++
		}
		c.index.add(h, d)
	}
	c.counters.created.Add(created)
	c.index.sweepIfWorth()
	return created
}

// byKey returns the entry with a key on a host (which may be nil), or nil.
func (x *index) byKey(h *host, key string) *entry {
	if h == nil {
		return nil
	}
	i, ok := h.items[x.symbols.find(key)]
	if !ok {
		return nil
	}
	return x.at(i)
}

// same reports whether declaring d would change nothing. Configured items never change by a declaration.
func (x *index) same(e *entry, d *definition) bool {
	if e.kind == model.Configured {
		return true
	}
	s := x.symbols.text
	return e.valueType == d.valueType && s[e.units] == d.units && s[e.metric] == d.metric && s[e.name] == d.name &&
		s[e.help] == d.help && e.intervalMillis == millis(d.interval) && slices.Equal(x.labels(e), d.labels)
}

// Expire drops declared items whose last value, or last declaration, is older than Options.Forget, and returns their
// ids. now is Unix nanoseconds; lastSeen returns the time of an item's newest stored value, zero for none.
// When the log cannot be written the error comes with those that were dropped before.
func (c *Catalog) Expire(ctx context.Context, now int64, lastSeen func(model.ItemID) int64) ([]model.ItemID, error) {
	old := c.silent(now-int64(c.options.Forget), lastSeen)
	if len(old) == 0 {
		return nil, ctx.Err()
	}
	c.writer.Lock()
	defer c.writer.Unlock()
	done, err := c.forget(ctx, old)
	return old[:done], err
}

// silent lists declared items that were neither declared nor valued since a time.
func (c *Catalog) silent(since int64, lastSeen func(model.ItemID) int64) []model.ItemID {
	var candidates, old []model.ItemID
	c.mu.RLock()
	for i := range c.index.count {
		e := c.index.at(i)
		if !e.dead && e.kind == model.Declared && int64(atomic.LoadUint32(&e.seenAt))*int64(time.Second) < since {
			candidates = append(candidates, e.id)
		}
	}
	c.mu.RUnlock()
	// lastSeen may be slow or ask the catalog, so it is called without the lock.
	for _, id := range candidates {
		if lastSeen(id) < since {
			old = append(old, id)
		}
	}
	return old
}

// Declared returns the ids of all declared items.
func (c *Catalog) Declared() []model.ItemID {
	var ids []model.ItemID
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i := range c.index.count {
		if e := c.index.at(i); !e.dead && e.kind == model.Declared {
			ids = append(ids, e.id)
		}
	}
	return ids
}

// forget logs tombstones, drops the items and returns how many it did. The caller holds writer.
func (c *Catalog) forget(ctx context.Context, ids []model.ItemID) (done int, err error) {
	for piece := range slices.Chunk(ids, maxForgetIDs) {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		if err := c.append(appendForget(nil, piece)); err != nil {
			return done, fmt.Errorf("forget %d items: %w", len(piece), err)
		}
		done += len(piece)
		c.mu.Lock()
		for _, id := range piece {
			if i, ok := c.index.byID[id]; ok && c.index.at(i).kind == model.Declared {
				c.index.kill(i)
				c.declared--
				c.counters.expired.Inc()
			}
		}
		c.index.sweepIfWorth()
		c.mu.Unlock()
	}
	c.compact()
	return done, nil
}

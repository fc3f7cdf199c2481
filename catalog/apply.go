package catalog

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tidemark/model"
)

// HostName is a host as far as the catalog knows it.
type HostName struct {
	ID model.HostID
	// Name is the technical name, unique.
	Name string
}

// Change is what became different in the configuration.
type Change struct {
	// Hosts are new or renamed hosts. Every host of Upserts must be here or known already.
	Hosts []HostName
	// Upserts are new or changed configured items; their ids come from NextItemID or from an entry with the same key.
	Upserts []model.Item
	// Deletes are configured items that are gone. Unknown ids are passed over.
	Deletes []model.ItemID
	// DeletedHosts are gone with all their items, also the declared ones.
	DeletedHosts []model.HostID
}

// Apply takes over a change of the configuration. Configured items are kept in memory only: after a start the whole
// configuration is applied once. A declared item with the host and key of a configured one gives way to it (with the
// same id its history stays); that, and the declared items of deleted hosts, is logged.
func (c *Catalog) Apply(ctx context.Context, change Change) error {
	c.writer.Lock()
	defer c.writer.Unlock()
	if gone := c.replaced(&change); len(gone) > 0 {
		if _, err := c.forget(ctx, gone); err != nil {
			return fmt.Errorf("apply configuration to the catalog: %w", err)
		}
	}
	if err := c.passIDs(change.Upserts); err != nil {
		return fmt.Errorf("apply configuration to the catalog: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.applyLocked(&change)
}

// passIDs moves the next id past those of items: the configuration may know ids that a lost log does not.
func (c *Catalog) passIDs(items []model.Item) error {
	next := c.nextID
	for i := range items {
		next = max(next, items[i].ID+1)
	}
	if next > c.limitID {
		if err := c.append(appendReserve(nil, next)); err != nil {
			return err
		}
		c.limitID = next
	}
	c.nextID = next
	return nil
}

// replaced lists the declared items that the change puts an end to.
func (c *Catalog) replaced(change *Change) []model.ItemID {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var gone []model.ItemID
	for i := range change.Upserts {
		item := &change.Upserts[i]
		e := c.index.byKey(c.index.hosts[item.HostID], item.Key)
		if e != nil && e.kind == model.Declared {
			gone = append(gone, e.id)
		}
	}
	for _, id := range change.DeletedHosts {
		h := c.index.hosts[id]
		if h == nil {
			continue
		}
		for _, i := range h.items {
			if e := c.index.at(i); e.kind == model.Declared {
				gone = append(gone, e.id)
			}
		}
	}
	return gone
}

func (c *Catalog) applyLocked(change *Change) error {
	x := c.index
	for _, id := range change.Deletes {
		if i, ok := x.byID[id]; ok && x.at(i).kind == model.Configured {
			x.kill(i)
		}
	}
	for _, id := range change.DeletedHosts {
		x.removeHost(id)
	}
	for _, h := range change.Hosts {
		x.host(h.ID, h.Name)
	}
	for i := range change.Upserts {
		item := &change.Upserts[i]
		h := x.hosts[item.HostID]
		if h == nil {
			return fmt.Errorf("apply item %d %q: its host %d is not known to the catalog", item.ID, item.Key, item.HostID)
		}
		if i, ok := x.byID[item.ID]; ok {
			x.kill(i)
		}
		if i, ok := h.items[x.symbols.find(item.Key)]; ok {
			x.kill(i)
		}
		d := configured(item)
		x.add(h, &d)
	}
	x.sweepIfWorth()
	return nil
}

// removeHost takes a host and its items out.
func (x *index) removeHost(id model.HostID) {
	h := x.hosts[id]
	if h == nil {
		return
	}
	for _, i := range h.items {
		x.kill(i)
	}
	delete(x.hosts, id)
	if name := x.symbols.text[h.name]; x.byName[name] == h {
		delete(x.byName, name)
	}
	x.symbols.release(h.name)
}

// configured gives a configured item the form of the index.
func configured(item *model.Item) definition {
	d := definition{
		id: item.ID, hostID: item.HostID, key: item.Key, metric: MetricName(item.Key), name: item.Name,
		units: item.Units, help: cut(item.Description, maxHelpBytes), labels: cleanLabels(item.Labels, item.Tags),
		interval: item.Interval, silence: item.Interval, kind: model.Configured, valueType: item.ValueType,
	}
	for _, step := range item.Steps {
		switch step.Type {
		case model.StepDiscardHeartbeat:
			if len(step.Params) > 0 {
				d.silence = max(d.silence, parseSpan(step.Params[0]))
			}
		case model.StepDiscardUnchanged:
			// Without a heartbeat an unchanged value may never come again.
			d.silence = max(d.silence, foreverSilence)
		}
	}
	return d
}

// foreverSilence stands for an item that sends only changes.
const foreverSilence = 24 * time.Hour

// parseSpan reads Zabbix's time form: a number of seconds, or one with the suffix s, m, h, d or w. Anything else is zero.
func parseSpan(text string) time.Duration {
	text = strings.TrimSpace(text)
	unit := time.Second
	if n := len(text); n > 0 {
		switch text[n-1] {
		case 's':
			text = text[:n-1]
		case 'm':
			unit, text = time.Minute, text[:n-1]
		case 'h':
			unit, text = time.Hour, text[:n-1]
		case 'd':
			unit, text = 24*time.Hour, text[:n-1]
		case 'w':
			unit, text = 7*24*time.Hour, text[:n-1]
		}
	}
	if text == "" || len(text) > 9 {
		return 0
	}
	n := time.Duration(0)
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + time.Duration(c-'0')
	}
	return min(n*unit, 366*24*time.Hour)
}

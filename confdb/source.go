package confdb

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"tidemark/model"
)

// hostsPerRead is how many hosts are read at once: few enough that their rows take little memory and that other work
// gets its turn between reads, enough that the cost of a query is spread.
const hostsPerRead = 64

// Changes returns the newest revision, and which hosts changed and which were deleted after the revision since.
func (d *DB) Changes(ctx context.Context, since uint64) (revision uint64, changed, gone []model.HostID, err error) {
	tx, err := d.sql.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return 0, nil, nil, d.wrap("read changes", err)
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	collect := func(list *[]model.HostID) func(*sql.Rows) error {
		return func(r *sql.Rows) error {
			var h model.HostID
			err := r.Scan(&h)
			*list = append(*list, h)
			return err
		}
	}
	err = tx.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'revision'").Scan(&revision)
	if err == nil {
		err = rowsOf(ctx, tx, collect(&changed), "SELECT id FROM hosts WHERE revision > ? OR ? = 0 ORDER BY id", since, since)
	}
	if err == nil && since > 0 {
		err = rowsOf(ctx, tx, collect(&gone), "SELECT host_id FROM deleted_hosts WHERE revision > ? ORDER BY host_id", since)
	}
	return revision, changed, gone, d.wrap("read changes", err)
}

// GlobalMacros returns the macros that hold for all hosts.
func (d *DB) GlobalMacros(ctx context.Context) ([]model.Macro, error) {
	rows, err := d.sql.QueryContext(ctx, "SELECT name, value, secret FROM global_macros ORDER BY name")
	if err != nil {
		return nil, d.wrap("read global macros", err)
	}
	var list []model.Macro
	err = each(rows, func(r *sql.Rows) error {
		var m model.Macro
		err := r.Scan(&m.Name, &m.Value, &m.Secret)
		if m.Secret {
			m.Value = d.secrets.shown(m.Value, macroPlace(m.Name))
		}
		list = append(list, m)
		return err
	})
	return list, d.wrap("read global macros", err)
}

// HostConfigs calls f with the configuration of each of the hosts, in order of id; those that do not exist are left out. Hosts are
// read ahead while f works.
// The configuration belongs to f, but the slices inside items and triggers are shared and must not be changed. f must not
// call the database.
func (d *DB) HostConfigs(ctx context.Context, ids []model.HostID, f func(*model.HostConfig) error) error {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := make(chan hostBatch)
	go func() {
		defer close(batches)
		for ids := range slices.Chunk(ids, hostsPerRead) {
			list, err := d.readHosts(ctx, ids)
			select {
			case batches <- hostBatch{list, d.wrap("read hosts", err)}:
			case <-ctx.Done():
				return
			}
		}
	}()
	for batch := range batches {
		if batch.err != nil {
			return batch.err
		}
		for _, h := range batch.hosts {
			if err := f(h); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// hostBatch is what one read found: the next is read while f works on it.
type hostBatch struct {
	hosts []*model.HostConfig
	err   error
}

// hostReader reads a few hosts.
type hostReader struct {
	tx    *sql.Tx
	defs  *definitions
	hosts map[model.HostID]*model.HostConfig
	// last is the host of the row before, because rows come host by host.
	last   *model.HostConfig
	shared map[string]string
	// valueMaps are the hosts' own.
	valueMaps map[model.HostID]valueMaps
	tags      map[string][]model.Tag
	steps     map[string][]model.Step
}

func (d *DB) readHosts(ctx context.Context, ids []model.HostID) ([]*model.HostConfig, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// The read is short, and with a context that may end the driver pays for each row.
	ctx = context.WithoutCancel(ctx)
	tx, err := d.sql.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	defs, err := d.define(ctx, tx)
	if err != nil {
		return nil, err
	}
	return readHosts(ctx, tx, defs, ids)
}

// readHosts reads hosts as tx sees them.
func readHosts(ctx context.Context, tx *sql.Tx, defs *definitions, ids []model.HostID) ([]*model.HostConfig, error) {
	r := &hostReader{
		tx: tx, defs: defs, hosts: make(map[model.HostID]*model.HostConfig), shared: make(map[string]string),
		tags: make(map[string][]model.Tag), steps: make(map[string][]model.Step),
	}
	ranges := idRanges(ids)
	for _, read := range []func(context.Context, idRange) error{
		r.readHosts, r.readGroups, r.readTemplates, r.readValueMaps, r.makeRoom, r.readItems, r.readRuleItems, r.readDiscovered, r.readTriggers,
	} {
		for _, span := range ranges {
			if err := read(ctx, span); err != nil {
				return nil, err
			}
		}
	}
	list := make([]*model.HostConfig, 0, len(ids))
	for _, id := range ids {
		if h := r.hosts[id]; h != nil {
			for _, t := range defs.chain(h.Host.Templates) {
				h.TemplateMacros = append(h.TemplateMacros, t.macros...)
			}
			list = append(list, h)
		}
	}
	return list, nil
}

type idRange struct{ from, to model.HostID }

// idRanges joins neighbouring ids, so that a read of all hosts takes few queries.
func idRanges(ids []model.HostID) []idRange {
	var ranges []idRange
	for _, id := range ids {
		if n := len(ranges); n > 0 && ranges[n-1].to+1 == id {
			ranges[n-1].to = id
			continue
		}
		ranges = append(ranges, idRange{id, id})
	}
	return ranges
}

// host returns the host of a row.
func (r *hostReader) host(id model.HostID) *model.HostConfig {
	if r.last == nil || r.last.Host.ID != id {
		r.last = r.hosts[id]
	}
	return r.last
}

func (r *hostReader) readHosts(ctx context.Context, span idRange) error {
	return rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		c := &model.HostConfig{}
		h := &c.Host
		var tags, macros, interfaces, extra string
		err := rows.Scan(&h.ID, &h.Host, &h.Name, &h.UUID, &h.Enabled, &h.Metadata, &tags, &macros, &interfaces, &extra, &h.Revision, &h.Proxy)
		if err == nil {
			h.Tags, err = unpackTags(tags)
		}
		if err == nil {
			h.Macros, err = r.defs.secrets.unpackMacros(macros)
		}
		if err == nil {
			h.Interfaces, err = unpackInterfaces(interfaces)
		}
		if err == nil {
			h.IPMI, err = unpackIPMI(extra)
		}
		if err == nil {
			h.Inventory, h.AutomaticInventory, err = unpackInventory(extra)
		}
		r.hosts[h.ID] = c
		return err
	}, `SELECT id, host, name, uuid, enabled, metadata, tags, macros, interfaces, extra, revision, coalesce(proxy_id, 0) FROM hosts WHERE id BETWEEN ? AND ?`,
		span.from, span.to)
}

func (r *hostReader) readGroups(ctx context.Context, span idRange) error {
	return rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		var id model.HostID
		var name string
		err := rows.Scan(&id, &name)
		if h := r.host(id); h != nil {
			h.Host.Groups = append(h.Host.Groups, r.share(name))
		}
		return err
	}, `SELECT g.host_id, o.name FROM host_groups g JOIN object_groups o ON o.id = g.group_id
		WHERE g.host_id BETWEEN ? AND ? ORDER BY g.host_id, o.name`, span.from, span.to)
}

func (r *hostReader) readTemplates(ctx context.Context, span idRange) error {
	return rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		var id model.HostID
		var t model.TemplateID
		err := rows.Scan(&id, &t)
		if h := r.host(id); h != nil {
			h.Host.Templates = append(h.Host.Templates, t)
		}
		return err
	}, `SELECT host_id, template_id FROM host_templates WHERE host_id BETWEEN ? AND ? ORDER BY host_id, template_id`,
		span.from, span.to)
}

// makeRoom gives the lists of items and triggers their capacity, which saves most of what reading allocates.
func (r *hostReader) makeRoom(ctx context.Context, span idRange) error {
	for _, table := range []string{"items", "triggers"} {
		err := rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
			var id model.HostID
			var n int
			err := rows.Scan(&id, &n)
			if h := r.host(id); h == nil {
				return err
			} else if table == "items" {
				h.Items = make([]model.ItemConfig, 0, n)
			} else {
				h.Triggers = make([]model.Trigger, 0, n)
			}
			return err
		}, "SELECT host_id, count(*) FROM "+table+" WHERE host_id BETWEEN ? AND ? GROUP BY host_id", span.from, span.to)
		if err != nil {
			return err
		}
	}
	return nil
}

// readItems reads the hosts' own items with all their columns, and of the inherited ones only the identities: with
// templates nearly all items are of that kind, and a column costs more than all else that is done with it.
func (r *hostReader) readItems(ctx context.Context, span idRange) error {
	var def int64
	var item model.ItemID
	var host model.HostID
	err := rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		if err := rows.Scan(&host, &item, &def); err != nil {
			return err
		}
		h, t := r.host(host), r.defs.items[def]
		if h == nil {
			return nil
		}
		if t == nil {
			return fmt.Errorf("item %d is inherited from row %d, which is no item of a template", item, def)
		}
		h.Items = append(h.Items, *t)
		i := &h.Items[len(h.Items)-1]
		i.ID, i.HostID = item, host
		return nil
	}, `SELECT host_id, item_id, def_id FROM items WHERE host_id BETWEEN ? AND ? AND rule_id IS NULL AND def_id IS NOT NULL
		ORDER BY host_id, id`, span.from, span.to)
	if err != nil {
		return err
	}
	var f itemFields
	targets := append([]any{&host, &item}, f.pointers()...)
	return rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		h := r.host(host)
		if h == nil {
			return nil
		}
		h.Items = append(h.Items, model.ItemConfig{})
		i := &h.Items[len(h.Items)-1]
		i.ID, i.HostID = item, host
		err := r.own(&f, i)
		if i.ValueMapName != "" {
			i.ValueMap = r.valueMaps[host][i.ValueMapName]
		}
		return err
	}, "SELECT host_id, item_id, "+itemColumns+
		" FROM items WHERE host_id BETWEEN ? AND ? AND rule_id IS NULL AND def_id IS NULL ORDER BY host_id, id", span.from, span.to)
}

// own fills a host's own item. Texts and lists that many items have in common are kept once.
func (r *hostReader) own(f *itemFields, i *model.ItemConfig) error {
	f.delay, f.history, f.trends, f.units = r.share(f.delay), r.share(f.history), r.share(f.trends), r.share(f.units)
	if f.name == f.key {
		f.name = f.key
	}
	steps, tags := f.steps, f.tags
	if (steps == "" || r.steps[steps] != nil) && (tags == "" || r.tags[tags] != nil) {
		f.steps, f.tags = "", ""
	}
	if err := f.item(i); err != nil {
		return err
	}
	if f.steps == "" && f.tags == "" {
		i.Steps, i.Tags = r.steps[steps], r.tags[tags]
		return nil
	}
	r.steps[steps], r.tags[tags] = i.Steps, i.Tags
	return nil
}

// share returns one string for all equal ones.
func (r *hostReader) share(s string) string {
	if s == "" {
		return ""
	}
	if have, ok := r.shared[s]; ok {
		return have
	}
	r.shared[s] = s
	return s
}

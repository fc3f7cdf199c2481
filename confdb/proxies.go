package confdb

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"strconv"

	"tidemark/model"
)

// maxProxies bounds the proxies.
const maxProxies = 10_000

// Proxies lists the proxies by name.
func (d *DB) Proxies(ctx context.Context) ([]model.Proxy, error) {
	rows, err := d.sql.QueryContext(ctx, `SELECT p.id, p.name, p.description, p.address, (SELECT count(*) FROM hosts h WHERE h.proxy_id = p.id)
		FROM proxies p ORDER BY p.name`)
	if err != nil {
		return nil, d.wrap("list proxies", err)
	}
	var list []model.Proxy
	err = each(rows, func(r *sql.Rows) error {
		var p model.Proxy
		err := r.Scan(&p.ID, &p.Name, &p.Description, &p.Address, &p.HostCount)
		list = append(list, p)
		return err
	})
	return list, d.wrap("list proxies", err)
}

// AddProxy makes a proxy, or brings description and address of the one with the name up to date. Names are as those of hosts; another one is
// ErrInvalid, and so is an address that is not host:port.
func (d *DB) AddProxy(ctx context.Context, p model.Proxy) (id model.ProxyID, err error) {
	ids, err := d.AddProxies(ctx, []model.Proxy{p})
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// AddProxies is AddProxy for several: all of them or, with an error, none. The ids are in the order of the list.
func (d *DB) AddProxies(ctx context.Context, list []model.Proxy) ([]model.ProxyID, error) {
	for i := range list {
		if err := checkProxy(&list[i]); err != nil {
			return nil, err
		}
	}
	ids := make([]model.ProxyID, 0, len(list))
	err := d.change(ctx, "add proxies", func(c *change) error {
		for i := range list {
			id, err := c.proxy(ctx, list[i].Name)
			if err != nil {
				return err
			}
			if err := c.exec(ctx, "UPDATE proxies SET description = ?, address = ? WHERE id = ?", list[i].Description, list[i].Address, id); err != nil {
				return err
			}
			ids = append(ids, id)
		}
		return nil
	})
	return ids, err
}

func checkProxy(p *model.Proxy) error {
	switch {
	case !validHostName(p.Name):
		return fmt.Errorf("proxy name %.130q: %w; expected 1 to 128 letters, digits, spaces, '.', '_' and '-'", p.Name, ErrInvalid)
	case len(p.Description) > maxTextBytes:
		return fmt.Errorf("description of proxy %s: %w; expected at most %d bytes, found %d", p.Name, ErrInvalid, maxTextBytes, len(p.Description))
	case p.Address != "" && !validAddress(p.Address):
		return fmt.Errorf("address %.130q of proxy %s: %w; expected host:port, such as 10.0.0.5:10051", p.Address, p.Name, ErrInvalid)
	}
	return nil
}

// maxAddressBytes bounds an address.
const maxAddressBytes = 255

func validAddress(text string) bool {
	host, port, err := net.SplitHostPort(text)
	n, portErr := strconv.ParseUint(port, 10, 16)
	return err == nil && portErr == nil && host != "" && n > 0 && len(text) <= maxAddressBytes
}

// proxy returns the proxy with the name, made if need be.
func (c *change) proxy(ctx context.Context, name string) (model.ProxyID, error) {
	id, err := c.id(ctx, "SELECT id FROM proxies WHERE name = ?", name)
	if err != nil || id != 0 {
		return model.ProxyID(id), err
	}
	n, err := c.id(ctx, "SELECT count(*) FROM proxies")
	if err != nil {
		return 0, err
	}
	if n >= maxProxies {
		return 0, fmt.Errorf("proxy %s: %w; there are %d proxies, which is the limit", name, ErrInvalid, n)
	}
	id, err = c.insert(ctx, "INSERT INTO proxies (name) VALUES (?)", name)
	return model.ProxyID(id), err
}

// RemoveProxy deletes proxies, all of them or, with an error, none; the server asks their hosts itself from then on. One that does not exist is
// ErrNotFound.
func (d *DB) RemoveProxy(ctx context.Context, names ...string) error {
	return d.change(ctx, "remove proxies", func(c *change) error {
		for _, name := range names {
			if err := c.removeProxy(ctx, name); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *change) removeProxy(ctx context.Context, name string) error {
	id, err := c.id(ctx, "SELECT id FROM proxies WHERE name = ?", name)
	if err != nil {
		return err
	}
	if id == 0 {
		return fmt.Errorf("proxy %q: %w", name, ErrNotFound)
	}
	var hosts []model.HostID
	err = c.query(ctx, func(r *sql.Rows) error {
		var host model.HostID
		err := r.Scan(&host)
		hosts = append(hosts, host)
		return err
	}, "SELECT id FROM hosts WHERE proxy_id = ?", id)
	if err != nil {
		return err
	}
	for _, host := range hosts {
		if err := c.assign(ctx, host, 0, ""); err != nil {
			return err
		}
	}
	return c.exec(ctx, "DELETE FROM proxies WHERE id = ?", id)
}

// SetHostProxy assigns a host to the proxy with the name; with an empty name to the server itself. A host or proxy that does not exist is
// ErrNotFound.
func (d *DB) SetHostProxy(ctx context.Context, host model.HostID, name string) error {
	return d.change(ctx, "assign host to proxy "+name, func(c *change) error { return c.setHostProxy(ctx, host, name) })
}

func (c *change) setHostProxy(ctx context.Context, host model.HostID, name string) error {
	var proxy int64
	var err error
	if name != "" {
		if proxy, err = c.id(ctx, "SELECT id FROM proxies WHERE name = ?", name); err == nil && proxy == 0 {
			err = fmt.Errorf("proxy %q: %w", name, ErrNotFound)
		}
	}
	if err != nil {
		return err
	}
	return c.assign(ctx, host, model.ProxyID(proxy), name)
}

// assign changes the proxy of a host in its column, and in what exports show of the host.
func (c *change) assign(ctx context.Context, host model.HostID, proxy model.ProxyID, name string) error {
	var extra string
	found := false
	err := c.query(ctx, func(r *sql.Rows) error { found = true; return r.Scan(&extra) }, "SELECT extra FROM hosts WHERE id = ?", host)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("host %d: %w", host, ErrNotFound)
	}
	kept := unpackObject(extra)
	if kept == nil {
		kept = map[string]any{}
	}
	delete(kept, "proxy")
	delete(kept, "monitored_by")
	var column any
	if proxy != 0 {
		kept["proxy"] = map[string]any{"name": name}
		column = int64(proxy)
	}
	c.touch(host)
	return c.exec(ctx, "UPDATE hosts SET proxy_id = ?, extra = ? WHERE id = ?", column, packObject(kept), host)
}

// importProxy gives an imported host the proxy that the file names, which is made if need be. It reports whether that changed anything.
func (i *importer) importProxy(ctx context.Context, id int64, o *ownerDef) (bool, error) {
	name := proxyOf(o.extra)
	var want any
	if name != "" {
		before, err := i.id(ctx, "SELECT id FROM proxies WHERE name = ?", name)
		if err != nil {
			return false, err
		}
		proxy, err := i.proxy(ctx, name)
		if err != nil {
			return false, err
		}
		if before == 0 {
			i.report.remark("host "+o.technical, o.line, "proxy %s was not known and is made; it is let in unencrypted until it gets a key with 'tidemark proxies add'", name)
		}
		want = int64(proxy)
	}
	same, err := i.id(ctx, "SELECT 1 FROM hosts WHERE id = ? AND proxy_id IS ?", id, want)
	if err != nil || same != 0 {
		return false, err
	}
	before := ""
	err = i.query(ctx, func(r *sql.Rows) error { return r.Scan(&before) }, "SELECT p.name FROM hosts h JOIN proxies p ON p.id = h.proxy_id WHERE h.id = ?", id)
	switch {
	case err != nil:
		return false, err
	case before != "" && name == "":
		i.report.remark("host "+o.technical, o.line, "the file has it without a proxy: it was asked by proxy %s and is asked by the server from now on; 'tidemark proxies assign' gives it back", before)
	case before != "":
		i.report.remark("host "+o.technical, o.line, "it was asked by proxy %s and is asked by proxy %s from now on", before, name)
	}
	return true, i.exec(ctx, "UPDATE hosts SET proxy_id = ? WHERE id = ?", want, id)
}

// proxyOf returns the name of the proxy in what was kept of an export.
func proxyOf(extra string) string {
	kept := unpackObject(extra)
	proxy, _ := kept["proxy"].(map[string]any)
	name, _ := proxy["name"].(string)
	if by, _ := kept["monitored_by"].(string); by == "SERVER" || by == "PROXY_GROUP" || !validHostName(name) {
		return ""
	}
	return name
}

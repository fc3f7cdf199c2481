package confdb

import (
	"context"
	"database/sql"
	"strings"

	"tidemark/model"
)

// ProxiedInterface is what a proxy said last of an interface of a host.
type ProxiedInterface struct {
	Host model.HostID
	// Number is the interface's index among those of the host.
	Number int
	// Available is 0 for not known, 1 for yes and 2 for no, with the reason.
	Available int
	Error     string
}

// SetProxiedInterfaces keeps what a proxy says of interfaces. One of a host that is gone is an error, and nothing is kept then.
func (d *DB) SetProxiedInterfaces(ctx context.Context, id model.ProxyID, states []ProxiedInterface) error {
	return d.change(ctx, "keep what a proxy says of interfaces", func(c *change) error {
		for _, s := range states {
			// PostgreSQL takes no zero bytes and no broken UTF-8.
			reason := strings.ReplaceAll(strings.ToValidUTF8(s.Error, ""), "\x00", "")
			err := c.exec(ctx, `INSERT INTO proxied_interfaces (host_id, number, proxy_id, available, error) VALUES (?, ?, ?, ?, ?)
				ON CONFLICT (host_id, number) DO UPDATE SET proxy_id = excluded.proxy_id, available = excluded.available, error = excluded.error`,
				s.Host, s.Number, id, s.Available, reason)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ProxiedInterfaces returns what a proxy said last of the interfaces of its hosts.
func (d *DB) ProxiedInterfaces(ctx context.Context, id model.ProxyID) ([]ProxiedInterface, error) {
	const what = "read what a proxy said of interfaces"
	rows, err := d.sql.QueryContext(ctx, "SELECT host_id, number, available, error FROM proxied_interfaces WHERE proxy_id = ? ORDER BY host_id, number", id)
	if err != nil {
		return nil, d.wrap(what, err)
	}
	var list []ProxiedInterface
	err = each(rows, func(r *sql.Rows) error {
		var s ProxiedInterface
		err := r.Scan(&s.Host, &s.Number, &s.Available, &s.Error)
		list = append(list, s)
		return err
	})
	return list, d.wrap(what, err)
}

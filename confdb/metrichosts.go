package confdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"tidemark/model"
)

// MetricsGroup is the group of hosts that were made for targets of metrics: of Prometheus scrapes, remote writes and OpenTelemetry.
const MetricsGroup = "Metrics targets"

// MetricHost is a host that stands for a target of metrics.
type MetricHost struct {
	// Host is the technical name, Name the visible one.
	Host, Name string
}

// MetricHosts makes sure that the hosts exist, creates those that do not in MetricsGroup, without interfaces and templates, and returns their
// ids. One change makes them all. A name that no host can have is ErrInvalid.
func (d *DB) MetricHosts(ctx context.Context, hosts []MetricHost) (ids []model.HostID, made int, err error) {
	for _, h := range hosts {
		if !validHostName(h.Host) {
			return nil, 0, fmt.Errorf("host name %.130q: %w; expected 1 to 128 letters, digits, spaces, '.', '_' and '-'", h.Host, ErrInvalid)
		}
	}
	err = d.change(ctx, "make hosts of metrics", func(c *change) error {
		ids, made = make([]model.HostID, len(hosts)), 0
		for i, h := range hosts {
			id, err := c.id(ctx, "SELECT id FROM hosts WHERE host = ?", h.Host)
			if err == nil && id == 0 {
				made++
				id, err = c.metricHost(ctx, h)
			}
			if err != nil {
				return err
			}
			ids[i] = model.HostID(id)
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	return ids, made, nil
}

func (c *change) metricHost(ctx context.Context, h MetricHost) (int64, error) {
	name := strings.ToValidUTF8(h.Name, "?")
	if name == "" || len(name) > maxHostNameBytes {
		name = h.Host
	}
	// A visible name is unique too; where another host has it, the technical name serves.
	taken, err := c.id(ctx, "SELECT id FROM hosts WHERE name = ?", name)
	if err != nil {
		return 0, err
	}
	if taken != 0 {
		name = h.Host
	}
	id, err := c.insert(ctx, "INSERT INTO hosts (host, name, metadata, interfaces) VALUES (?, ?, '', '')", h.Host, name)
	if err != nil {
		return 0, err
	}
	c.touch(model.HostID(id))
	group, _, err := c.group(ctx, hostGroup, MetricsGroup, "")
	if err != nil {
		return 0, err
	}
	return id, c.exec(ctx, "INSERT INTO host_groups (host_id, group_id) VALUES (?, ?)", id, group)
}

// maxHostNameBytes bounds a visible name.
const maxHostNameBytes = 128

// ForgetMetricHosts deletes those of the hosts that still are as MetricHosts made them: in MetricsGroup, without templates and items. It
// returns how many went.
func (d *DB) ForgetMetricHosts(ctx context.Context, ids []model.HostID) (gone int, err error) {
	err = d.change(ctx, "forget hosts of metrics", func(c *change) error {
		gone = 0
		for _, id := range ids {
			bare := int64(0)
			err := c.query(ctx, func(r *sql.Rows) error { return r.Scan(&bare) }, `SELECT h.id FROM hosts h
				JOIN host_groups hg ON hg.host_id = h.id JOIN object_groups g ON g.id = hg.group_id AND g.kind = ? AND g.name = ?
				WHERE h.id = ? AND NOT EXISTS (SELECT 1 FROM items i WHERE i.host_id = h.id)
				AND NOT EXISTS (SELECT 1 FROM host_templates t WHERE t.host_id = h.id)`, hostGroup, MetricsGroup, id)
			if err != nil {
				return err
			}
			if bare == 0 {
				continue
			}
			if err := c.deleteHost(ctx, id); err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
			gone++
		}
		return nil
	})
	return gone, err
}

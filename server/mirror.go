package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/confcache"
	"tidemark/confdb"
	"tidemark/histcache"
	"tidemark/model"
)

// A mirror is a server that shows hosts and values of another process on this machine, and changes nothing: a proxy's page.

const (
	// maxMirrored bounds the items that a mirror shows.
	maxMirrored = 200_000
	// mirrorChunk is how many items are brought in at once.
	mirrorChunk = 5000
	mirrorGroup = "Behind this proxy"
)

// mirrorTypes are the names of value types in exports. Binary values are those of discovery rules, which are not shown.
var mirrorTypes = map[model.ValueType]string{
	model.Float: "FLOAT", model.Character: "CHAR", model.LogEntry: "LOG", model.Uint: "UNSIGNED", model.Text: "TEXT",
}

// mirror is what a mirror knows of the other process.
type mirror struct {
	// items are the own items by those of the other.
	items atomic.Pointer[map[model.ItemID]*model.Item]

	values, dropped *metrics.Counter
}

func newMirror(set *metrics.Set) *mirror {
	return &mirror{values: set.NewCounter("tidemark_mirror_values_total"), dropped: set.NewCounter("tidemark_mirror_dropped_values_total")}
}

// Follow makes hosts and items as another process has them. It is for servers with Options.Mirror, and for one goroutine.
func (s *Server) Follow(ctx context.Context, other *confcache.Snapshot) error {
	known := s.cache.Snapshot()
	var chunk []mirroredHost
	count, pending := 0, 0
	for h := range other.Hosts() {
		m := mirroredHost{Host: h.Host, Name: h.Name, Groups: []mirroredName{{mirrorGroup}}}
		items := other.Items(h.ID)
		for i := range items {
			if item := &items[i]; mirrorTypes[item.ValueType] != "" && item.Enabled {
				m.Items = append(m.Items, mirroredItem{item.Key, item.Key, "TRAP", "0", mirrorTypes[item.ValueType]})
				m.secrets(item)
			}
		}
		if count += len(m.Items); count > maxMirrored {
			return fmt.Errorf("the page shows at most %d items, and there are more", maxMirrored)
		}
		if m.isKnown(known) {
			continue
		}
		chunk, pending = append(chunk, m), pending+len(m.Items)
		if pending >= mirrorChunk {
			if err := s.mirrorHosts(ctx, chunk); err != nil {
				return err
			}
			chunk, pending = nil, 0
		}
	}
	if err := s.mirrorHosts(ctx, chunk); err != nil {
		return err
	}
	for h := range known.Hosts() {
		if _, ok := other.Host(h.Host); !ok {
			if err := s.db.DeleteHost(ctx, h.ID); err != nil && !errors.Is(err, confdb.ErrNotFound) {
				return fmt.Errorf("remove host %s: %w", h.Host, err)
			}
		}
	}
	if _, err := s.cache.Refresh(ctx); err != nil {
		return err
	}
	s.mirror.match(other, s.cache.Snapshot())
	return nil
}

// match finds the own items of another process' ones.
func (m *mirror) match(other, own *confcache.Snapshot) {
	table := map[model.ItemID]*model.Item{}
	for h := range other.Hosts() {
		items := other.Items(h.ID)
		for i := range items {
			if item, ok := own.ItemOf(h.Host, items[i].Key); ok {
				table[items[i].ID] = item
			}
		}
	}
	m.items.Store(&table)
}

// The form of an export.
type (
	mirroredName struct {
		Name string `json:"name"`
	}
	mirroredItem struct {
		Name  string `json:"name"`
		Key   string `json:"key"`
		Type  string `json:"type"`
		Delay string `json:"delay"`
		Value string `json:"value_type"`
	}
	mirroredHost struct {
		Host   string         `json:"host"`
		Name   string         `json:"name"`
		Groups []mirroredName `json:"groups"`
		Items  []mirroredItem `json:"items,omitempty"`
		// Macros are the secret ones in keys, without their values: only so are they known here, and stay in the keys.
		Macros []mirroredMacro `json:"macros,omitempty"`
	}
	mirroredMacro struct {
		Macro string `json:"macro"`
		Type  string `json:"type"`
		Value string `json:"value"`
	}
)

// secrets adds the secret macros in the key of an item.
func (m *mirroredHost) secrets(item *model.Item) {
	if item.Collect == nil {
		return
	}
	for _, secret := range item.Collect.KeySecrets {
		if !slices.ContainsFunc(m.Macros, func(o mirroredMacro) bool { return o.Macro == secret.Name }) {
			m.Macros = append(m.Macros, mirroredMacro{secret.Name, "SECRET_TEXT", "-"})
		}
	}
}

// isKnown reports whether a host is there with just these items.
func (m *mirroredHost) isKnown(s *confcache.Snapshot) bool {
	h, ok := s.Host(m.Host)
	if !ok || h.Name != m.Name || len(s.Items(h.ID)) != len(m.Items) {
		return false
	}
	for _, i := range m.Items {
		if item, ok := s.ItemByKey(h.ID, i.Key); !ok || mirrorTypes[item.ValueType] != i.Value {
			return false
		}
	}
	return true
}

func (s *Server) mirrorHosts(ctx context.Context, hosts []mirroredHost) error {
	if len(hosts) == 0 {
		return nil
	}
	group := struct {
		Name string `json:"name"`
		UUID string `json:"uuid"`
	}{mirrorGroup, "6f7a1c0d2b9e4a35b8c1d4e5f6072839"}
	text, err := json.Marshal(map[string]any{"zabbix_export": map[string]any{"version": "6.0", "groups": []any{group}, "hosts": hosts}})
	if err != nil {
		return err
	}
	report, err := s.db.Import(ctx, "hosts of the proxy", text, confdb.ImportOptions{DeleteMissing: true})
	if err != nil {
		return fmt.Errorf("bring in %d hosts: %w", len(hosts), err)
	}
	for i, r := range report.Remarks {
		if r.Refused && i < 10 {
			s.logger.Warn("something is not shown", "object", r.Path, "reason", r.Reason)
		}
	}
	return nil
}

// Show stores copies of values of another process. It does not wait: while the own history cache is half full it drops them.
func (s *Server) Show(b *model.Batch) {
	table := s.mirror.items.Load()
	if table == nil {
		return
	}
	own := model.NewBatch()
	own.ArrivedAt = b.ArrivedAt
	for i, id := range b.Items {
		item, t := (*table)[id], b.Types[i]
		if item == nil || t != item.ValueType && t != model.Unsupported {
			continue
		}
		if t.InArena() {
			own.AppendBytes(item.ID, b.At[i], t, b.Bytes(i))
		} else {
			own.Append(item.ID, b.At[i], t, b.Bits[i])
		}
	}
	if own.Len() == 0 {
		own.Free()
		return
	}
	count := own.Len()
	if used, limit := s.histcache.Used(); used > limit/2 {
		s.mirror.dropped.Add(count)
		own.Free()
		return
	}
	if err := s.histcache.Put(context.Background(), own); err != nil {
		if !errors.Is(err, histcache.ErrClosed) {
			s.logger.Warn("values are not shown", "error", err)
		}
		own.Free()
		return
	}
	s.mirror.values.Add(count)
}

package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"tidemark/collect/keyring"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/proxy/queue"
	"tidemark/storage"
	"tidemark/wire/proxyconfig"
)

// configuration is what the server gave last: hosts and items for the configuration cache, of which it is the source, keys, and the ids by which
// the server knows interfaces. The text that came is kept in a file, so that a proxy that starts while the server is away goes on.
type configuration struct {
	fs     vfs.FS
	path   string
	keys   *keyring.Keyring
	logger *slog.Logger
	// server is what the server of a passive proxy must show; nil for a proxy that connects by itself. It is set before anything is served.
	server *model.HostTLS

	mu sync.Mutex
	// body is the text in force.
	body     []byte
	received *proxyconfig.Received
	hosts    map[model.HostID]*known
	deleted  map[model.HostID]uint64
	revision uint64
	// at is when the server was last asked with success, Unix nanoseconds.
	at int64
}

// known is a host with the revision at which it changed.
type known struct {
	model.HostConfig
	revision uint64
}

func openConfiguration(fsys vfs.FS, path string, logger *slog.Logger) (*configuration, error) {
	c := &configuration{
		fs: fsys, path: path, keys: keyring.New(nil), logger: logger, received: &proxyconfig.Received{}, hosts: map[model.HostID]*known{}, deleted: map[model.HostID]uint64{},
		// Agents compare revisions with those of an earlier run, so they begin where no earlier one came to.
		revision: uint64(time.Now().Unix()),
	}
	body, err := queue.ReadFile(fsys, path)
	var damage *storage.CorruptionError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case errors.As(err, &damage):
		logger.Error("the configuration of the last run is damaged; the proxy waits for the server", "error", err)
		return c, nil
	case err != nil:
		return nil, err
	}
	r, err := proxyconfig.Decode(body)
	if err != nil {
		logger.Error("the configuration of the last run cannot be read; the proxy waits for the server", "error", err)
		return c, nil
	}
	c.use(body, r)
	return c, nil
}

// take takes what the server answered. It reports whether anything changed.
func (c *configuration) take(body []byte, now int64) (bool, error) {
	c.mu.Lock()
	same := bytes.Equal(body, c.body)
	c.mu.Unlock()
	if same {
		c.asked(now)
		return false, nil
	}
	r, err := proxyconfig.Decode(body)
	if err != nil {
		return false, err
	}
	body = slices.Clone(body)
	if err := queue.WriteFile(c.fs, c.path, body); err != nil {
		// In force all the same: the next one may be kept.
		c.logger.Error("the configuration is not kept on disk; after a restart without server the proxy works with an older one", "error", err)
	}
	c.use(body, r)
	c.asked(now)
	return true, nil
}

func (c *configuration) asked(now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = now
}

// use brings a configuration into force for those who ask; the cache is refreshed by the caller.
func (c *configuration) use(body []byte, r *proxyconfig.Received) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision++
	all := !reflect.DeepEqual(r.Global, c.received.Global) || !reflect.DeepEqual(r.Regexps, c.received.Regexps)
	seen := make(map[model.HostID]bool, len(r.Hosts))
	for i := range r.Hosts {
		h := &r.Hosts[i]
		id := h.Host.ID
		seen[id] = true
		if before := c.hosts[id]; before != nil && !all {
			h.Host.Revision = before.Host.Revision
			if reflect.DeepEqual(&before.HostConfig, h) {
				continue
			}
		}
		h.Host.Revision = c.revision
		c.hosts[id] = &known{*h, c.revision}
		delete(c.deleted, id)
	}
	for id := range c.hosts {
		if !seen[id] {
			delete(c.hosts, id)
			c.deleted[id] = c.revision
		}
	}
	c.body, c.received = body, r
	c.applyKeys()
}

// askedBy sets what the server of a passive proxy must show.
func (c *configuration) askedBy(t model.HostTLS) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = &t
	c.applyKeys()
}

func (c *configuration) applyKeys() {
	list := c.received.TLS
	if c.server != nil {
		list = append(slices.Clone(list), *c.server)
	}
	c.keys.Apply(list)
}

// Changes implements confcache.Source.
func (c *configuration) Changes(_ context.Context, since uint64) (revision uint64, changed, deleted []model.HostID, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, h := range c.hosts {
		if since == 0 || h.revision > since {
			changed = append(changed, id)
		}
	}
	for id, at := range c.deleted {
		if at > since {
			deleted = append(deleted, id)
		}
	}
	slices.Sort(changed)
	slices.Sort(deleted)
	return c.revision, changed, deleted, nil
}

// GlobalMacros implements confcache.Source.
func (c *configuration) GlobalMacros(context.Context) ([]model.Macro, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.received.Global, nil
}

// Regexps implements confcache.Source.
func (c *configuration) Regexps(context.Context) ([]model.GlobalRegexp, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.received.Regexps, nil
}

// HostConfigs implements confcache.Source.
func (c *configuration) HostConfigs(_ context.Context, ids []model.HostID, f func(*model.HostConfig) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if h := c.hosts[id]; h != nil {
			if err := f(&h.HostConfig); err != nil {
				return err
			}
		}
	}
	return nil
}

// settled forgets deleted hosts that the cache has let go.
func (c *configuration) settled(revision uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, at := range c.deleted {
		if at <= revision {
			delete(c.deleted, id)
		}
	}
}

// discovery are the rules of network discovery.
func (c *configuration) discovery() []proxyconfig.Rule {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.received.Discovery
}

// isRule reports whether an item is that of a discovery rule.
func (c *configuration) isRule(id model.ItemID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.received.Rules[id]
}

// logs are how far the server knows logs to be read.
func (c *configuration) logs() map[model.ItemID]proxyconfig.LogPosition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.received.Logs
}

// interfaceIDs are the ids of a host's interfaces in their order.
func (c *configuration) interfaceIDs(id model.HostID) []uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.received.Interfaces[id]
}

// state is how many hosts there are, and when the server was last asked, Unix nanoseconds.
func (c *configuration) state() (hosts int, at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.hosts), c.at
}

// versionError explains a refusal that comes from the line of the server.
func versionError(err error) error {
	var refused *proxyconfig.RefusedError
	if errors.As(err, &refused) && strings.Contains(refused.Info, "version") {
		return fmt.Errorf("%w; this proxy speaks the protocol of Zabbix %s", err, proxyconfig.Version)
	}
	return err
}

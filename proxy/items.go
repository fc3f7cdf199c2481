package proxy

import (
	"context"
	"sync"
	"time"

	"tidemark/collect/trapper"
	"tidemark/confcache"
	"tidemark/model"
	"tidemark/wire/zbx"
)

// items is what preprocessing asks of the configuration.
type items struct{ cache *confcache.Cache }

// Item implements preproc.Items.
func (i items) Item(id model.ItemID) (*model.Item, bool) { return i.cache.Snapshot().Item(id) }

// ItemByKey implements preproc.Items.
func (i items) ItemByKey(host model.HostID, key string) (*model.Item, bool) {
	return i.cache.Snapshot().ItemByKey(host, key)
}

// Dependents implements preproc.Items.
func (i items) Dependents(id model.ItemID) []*model.Item { return i.cache.Snapshot().Dependents(id) }

// trapperItems is what the trapper asks; the methods are called for every value and do not allocate.
type trapperItems struct {
	cache  *confcache.Cache
	isRule func(model.ItemID) bool
}

// Host implements trapper.Items.
func (t trapperItems) Host(name []byte) (trapper.HostRef, bool) {
	h, ok := t.cache.Snapshot().HostBytes(name)
	if !ok {
		return trapper.HostRef{}, false
	}
	return trapper.HostRef{ID: h.ID, Enabled: h.Enabled}, true
}

// ItemByKey implements trapper.Items.
func (t trapperItems) ItemByKey(host model.HostID, key []byte) (trapper.ItemRef, bool) {
	item, ok := t.cache.Snapshot().ItemByKeyBytes(host, key)
	if !ok {
		return trapper.ItemRef{}, false
	}
	return t.ref(item), true
}

// ItemByID implements trapper.Items.
func (t trapperItems) ItemByID(id model.ItemID) (trapper.ItemRef, bool) {
	item, ok := t.cache.Snapshot().Item(id)
	if !ok {
		return trapper.ItemRef{}, false
	}
	return t.ref(item), true
}

func (t trapperItems) ref(item *model.Item) trapper.ItemRef {
	r := trapper.ItemRef{
		ID: item.ID, HostID: item.HostID, Type: item.Type, ValueType: item.ValueType, Enabled: item.Enabled, Trapping: item.Trapping, AllowedHosts: item.AllowedHosts,
	}
	if r.ValueType == model.Binary && t.isRule(item.ID) {
		r.ValueType = model.Text // what comes for a discovery rule is text
	}
	return r
}

// ActiveChecks implements trapper.Items.
func (t trapperItems) ActiveChecks(host model.HostID) ([]*model.Item, uint64) {
	s := t.cache.Snapshot()
	return s.ActiveItems(host), s.HostRevision(host)
}

// maxNewcomers bounds the agents that wait to be told to the server; they ask again within minutes.
const maxNewcomers = 10_000

// newcomers are the agents that the server is to be told of: unknown ones, and known ones that say something new of themselves.
type newcomers struct {
	mu     sync.Mutex
	byName map[string]zbx.ProxiedAgent
}

// Register implements trapper.Registrar. No agent is let in by the proxy: the server does, and the next configuration has the host.
func (n *newcomers) Register(_ context.Context, hello trapper.AgentHello) (bool, error) {
	a := zbx.ProxiedAgent{
		At: time.Now().Unix(), Host: hello.Host, IP: hello.IP, DNS: hello.Interface, Metadata: hello.Metadata, Port: hello.Port, Connection: int(hello.Kind),
	}
	if a.IP == "" {
		a.IP = hello.Peer
	}
	if a.Port == 0 {
		a.Port = 10050
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.byName == nil {
		n.byName = make(map[string]zbx.ProxiedAgent)
	}
	if _, has := n.byName[a.Host]; has || len(n.byName) < maxNewcomers {
		n.byName[a.Host] = a
	}
	return false, nil
}

// waiting returns copies of at most limit agents.
func (n *newcomers) waiting(limit int) []zbx.ProxiedAgent {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []zbx.ProxiedAgent
	for _, a := range n.byName {
		if len(list) == limit {
			break
		}
		list = append(list, a)
	}
	return list
}

// told drops agents that the server knows of, unless they said something new since.
func (n *newcomers) told(list []zbx.ProxiedAgent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range list {
		if n.byName[a.Host] == a {
			delete(n.byName, a.Host)
		}
	}
}

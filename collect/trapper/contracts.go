package trapper

import (
	"context"

	"tidemark/model"
	"tidemark/wire/zbx"
)

// HostRef is what the trapper needs to know of a host.
type HostRef struct {
	ID model.HostID
	// Enabled is false for a host that is not monitored: its values are refused.
	Enabled bool
	// Proxy is what its agent must speak to instead; zero for none.
	Proxy model.ProxyID
	// Metadata is what its agent said of itself when it was registered.
	Metadata string
}

// ItemRef is what the trapper needs to know of an item.
type ItemRef struct {
	ID        model.ItemID
	HostID    model.HostID
	Kind      model.ItemKind
	Type      model.ItemType
	ValueType model.ValueType
	// Enabled is false for an item that is not monitored: its values are refused.
	Enabled bool
	// Trapping is set for HTTP agent items that accept values from senders too.
	Trapping bool
	// Proxy is what asks for the item's values and preprocesses them; zero for the server itself.
	Proxy model.ProxyID
	// AllowedHosts is the list of peers from which values of the item may come by a sender, macros expanded: addresses,
	// networks and DNS names, parted by commas; empty for all.
	AllowedHosts string
}

// Items knows hosts and items. Its methods are called for every value from many goroutines; they must not keep name or
// key, and should not allocate.
type Items interface {
	Host(name []byte) (HostRef, bool)
	ItemByKey(host model.HostID, key []byte) (ItemRef, bool)
	ItemByID(id model.ItemID) (ItemRef, bool)
	// ActiveChecks returns the enabled items of type ActiveAgent of a host, which the caller only reads, and the
	// host's revision, which rises with every change of them. A host that is not enabled has none.
	ActiveChecks(host model.HostID) (items []*model.Item, revision uint64)
}

// AgentHello is what an agent that asks for its list says of itself.
type AgentHello struct {
	Host, Metadata, Interface, IP string
	// Port is where the agent listens; zero when it does not say.
	Port int
	// Version is as the agent says it: "6.0", "7.0.3"; empty before 4.4.
	Version string
	// Variant is 1 for agent, 2 for agent 2, 0 when it does not say.
	Variant int
	// Tidemark is set for our own agent.
	Tidemark bool
	// Peer is the address that the connection came from, without port; Kind is how it is protected.
	Peer string
	Kind model.ConnectionKind
}

// Registrar takes in agents on their first word.
type Registrar interface {
	// Register is called for a host that Items does not know, and for a known one whose metadata has changed. When it
	// returns true, Items knows the host from then on. An error is logged, and an unknown agent is refused.
	Register(ctx context.Context, hello AgentHello) (accepted bool, err error)
}

// Declaration is an item that our own agent makes known.
type Declaration = zbx.Declaration

// Declarer makes declared items.
type Declarer interface {
	// Declare returns the id of each declaration, in order, zero for one that is refused (over a limit, or the key of
	// a configured item). When it returns, Items knows the items. Declaring the same again changes nothing.
	Declare(ctx context.Context, host model.HostID, declarations []Declaration) ([]model.ItemID, error)
}

// Presence hears of signs of life.
type Presence interface {
	// Seen says that something came from a host at this time, Unix nanoseconds.
	Seen(host model.HostID, at int64)
}

// Marks is where the facts of an earlier run are kept; engines are.
type Marks interface {
	Marks(fn func(model.Mark))
}

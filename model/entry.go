package model

import "time"

// Entry is an item as the catalog lists it: what readers need to find, name and draw it. It is a plain value; changing
// it changes nothing in the catalog.
type Entry struct {
	ID     ItemID
	HostID HostID
	// Host is the technical name of the host.
	Host string
	// Key is the item key with its parameters.
	Key string
	// Metric is the name in PromQL (the label __name__); empty for items without numbers.
	Metric string
	// Name is for people.
	Name string
	// Units are Zabbix's: "B", "%", "s", "!packets"; empty for none.
	Units string
	// Help is the description of what is measured; may be empty.
	Help      string
	Kind      ItemKind
	ValueType ValueType
	// Interval is the time between two measurements; zero when it is not known (trapper items).
	Interval time.Duration
	// Silence is how long a healthy item may go without a new value: its interval, or the heartbeat of a step that
	// discards unchanged values if that is longer; zero when it is not known.
	Silence time.Duration
}

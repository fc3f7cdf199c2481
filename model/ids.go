// Package model holds the nouns of the product: hosts, items, values, triggers, events, problems.
//
// It is data only. It imports nothing but the standard library and every other package may import it, so that one
// readable glossary serves the whole program.
package model

// ItemID identifies one item, configured or declared. It is given by the catalog, is never reused, and is stored
// with the data. Zero is no item.
type ItemID uint64

// HostID identifies one host. Zero is no host.
type HostID uint64

// TriggerID identifies one trigger. Zero is no trigger.
type TriggerID uint64

// EventID identifies one event. Ids rise with time. Zero is no event.
type EventID uint64

// TemplateID identifies one template. Zero is no template.
type TemplateID uint64

// LSN is the log sequence number of a durable log: the position just after the last byte of a record. LSNs rise, and
// zero is the position before the first record.
type LSN uint64

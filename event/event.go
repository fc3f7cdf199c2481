// Package event turns state changes of triggers into events and problems, and keeps the open problems at hand.
//
// The evaluator hands over what a batch changed in one call of Log.Record. The log gives ids, expands names, and
// writes events, states and the evaluated LSN in one transaction of its Store, so that after a crash evaluation goes on
// from exactly the states that belong to the stored LSN. An LSN without events is written at most once a second.
package event

import (
	"context"

	"tidemark/model"
)

// Record is what is written in one transaction: all of it or nothing.
type Record struct {
	// Events are new events in rising order of ID. A recovery (Problem false) closes the problem ProblemID at its time At.
	Events []model.Event
	// States are the triggers whose state changed, one row a trigger, sorted by id; each replaces the stored one.
	States []model.TriggerState
	// Evaluated is the LSN up to which the triggers were evaluated. It never falls.
	Evaluated model.LSN
}

// Loaded is what a store knows when the process starts.
type Loaded struct {
	// States are the stored states of all triggers.
	States []model.TriggerState
	// Problems are the open ones: events that are problems and that no recovery has closed.
	Problems []model.Problem
	// Evaluated is the last LSN that Record wrote; zero when none.
	Evaluated model.LSN
	// LastEventID is the highest id that any event ever had, deleted ones too. The log allocates the ids behind it.
	LastEventID model.EventID
}

// Store makes events durable. The log calls its methods one at a time.
type Store interface {
	// Load reads what Record wrote.
	Load(ctx context.Context) (Loaded, error)
	// Record writes r in one transaction. After an error nothing of r is stored and the same content, perhaps with
	// more behind it, is tried again. r and its slices are valid during the call.
	Record(ctx context.Context, r Record) error
}

// Objects finds definitions for names, tags and severities. The results must not be changed. Its methods are called during
// Record and must not call the log or the evaluator back.
type Objects interface {
	// TriggerByID finds a trigger.
	TriggerByID(id model.TriggerID) (*model.Trigger, bool)
	// HostByName finds a host by its technical name.
	HostByName(host string) (*model.Host, bool)
	// ItemOf finds an item by the technical name of its host and its key.
	ItemOf(host, key string) (*model.Item, bool)
}

// Values finds values for {ITEM.VALUE} and {ITEM.LASTVALUE}.
type Values interface {
	// LastText returns the newest value of the item that is not newer than at (Unix nanoseconds) as text without units.
	LastText(ctx context.Context, item model.ItemID, at int64) (string, bool)
}

// Expressions evaluates {?expression} macros.
type Expressions interface {
	// EvaluateText returns the result of an expression at a time (Unix nanoseconds) as text.
	EvaluateText(ctx context.Context, expression string, at int64) (string, error)
}

// Sink takes events that were stored.
type Sink interface {
	// Put takes events in rising order of id. They are valid during the call. Put must not block and must not call the
	// log back. A crash may come between the store and Put: who must not miss events reads the store at its start.
	Put(events []model.Event)
}

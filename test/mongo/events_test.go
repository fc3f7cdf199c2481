package mongo

import (
	"context"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
)

// told is what a driver says it did with one command on one namespace.
type told struct {
	Requests uint64 `json:"requests"`
	Errors   uint64 `json:"errors"`
	// Millis are the times of the requests, one by one, as the driver measured them.
	Millis []float64 `json:"millis"`
}

// key names a command on a namespace, as the report does: the bare database where a command has no collection.
type key struct{ Namespace, Command string }

// ledger keeps what drivers tell.
type ledger struct {
	mu   sync.Mutex
	told map[key]*told
	open map[int64]key
}

func newLedger() *ledger { return &ledger{told: map[key]*told{}, open: map[int64]key{}} }

// keyOf finds the namespace of a command by the rules of MongoDB's manual.
func keyOf(database, command string, document bson.Raw) key {
	field := command
	if command == "getMore" {
		field = "collection"
	}
	if collection, ok := document.Lookup(field).StringValueOK(); ok {
		database += "." + collection
	}
	return key{database, command}
}

// monitor listens to the Go driver.
func (l *ledger) monitor() *event.CommandMonitor {
	return &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.open[e.RequestID] = keyOf(e.DatabaseName, e.CommandName, e.Command)
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) {
			failed := false
			if list, ok := e.Reply.Lookup("writeErrors").ArrayOK(); ok {
				values, _ := list.Values()
				failed = len(values) > 0
			}
			l.end(e.RequestID, failed, e.Duration)
		},
		Failed: func(_ context.Context, e *event.CommandFailedEvent) { l.end(e.RequestID, true, e.Duration) },
	}
}

func (l *ledger) end(id int64, failed bool, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.open[id]
	delete(l.open, id)
	t := l.told[k]
	if t == nil {
		t = &told{}
		l.told[k] = t
	}
	t.Requests++
	if failed {
		t.Errors++
	}
	t.Millis = append(t.Millis, float64(took)/1e6)
}

// requests is how many requests were told of.
func (l *ledger) requests() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := uint64(0)
	for _, t := range l.told {
		n += t.Requests
	}
	return n
}

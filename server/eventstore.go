package server

import (
	"context"
	"errors"

	"tidemark/confdb"
	"tidemark/event"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/trigger"
)

// expressions lets the event log evaluate macros by an evaluator that is made after it.
type expressions struct{ evaluator *trigger.Evaluator }

// EvaluateText implements event.Expressions.
func (e *expressions) EvaluateText(ctx context.Context, expression string, at int64) (string, error) {
	return e.evaluator.EvaluateText(ctx, expression, at)
}

// eventStore keeps events in the configuration database, and tells the engine which part of its log is not needed any more.
type eventStore struct {
	db     *confdb.DB
	engine storage.Replayer
	// following says that the database is a standby's copy, which nothing is put right in.
	following bool
	release   func(model.LSN)
}

// Load implements event.Store.
func (e eventStore) Load(ctx context.Context) (event.Loaded, error) {
	var l event.Loaded
	var err error
	if !e.following {
		// Triggers that were deleted while no event log was open leave their states and problems behind.
		if err := e.db.ForgetTriggers(ctx, nil); err != nil {
			return l, err
		}
	}
	if l.States, err = e.db.TriggerStates(ctx); err != nil {
		return l, err
	}
	if l.Problems, err = e.db.OpenProblems(ctx); err != nil {
		return l, err
	}
	if l.Evaluated, err = e.db.Evaluated(ctx); err != nil {
		return l, err
	}
	if last := e.engine.LastLSN(); l.Evaluated > last && !e.following {
		// The log was lost, put back from a backup, or is another store's: its positions mean nothing here.
		if err = e.db.ResetEvaluated(ctx, last); err != nil {
			return l, err
		}
		l.Evaluated = last
	}
	l.LastEventID, err = e.db.MaxEventID(ctx)
	return l, err
}

// Record implements event.Store.
func (e eventStore) Record(ctx context.Context, r event.Record) error {
	err := e.db.Record(ctx, r.Events, r.States, r.Evaluated)
	if errors.Is(err, confdb.ErrReadOnly) {
		return nil // fenced: the new primary evaluates the same values, from what it has of this database
	}
	if err != nil {
		return err
	}
	e.release(r.Evaluated)
	return nil
}

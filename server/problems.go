package server

import (
	"context"
	"strconv"
	"time"

	"tidemark/api/rest"
	"tidemark/collectors"
	"tidemark/confdb"
	"tidemark/event"
	"tidemark/expr"
	"tidemark/model"
	"tidemark/preproc"
	"tidemark/storage"
	"tidemark/trigger"
)

// problems answers what is and was wrong: open problems and states from the event log, older ones from the configuration database.
type problems struct {
	log   *event.Log
	db    *confdb.DB
	names *namedItems
	// evaluated knows the state of triggers that never changed, which the log does not.
	evaluated *trigger.Evaluator
}

// Open implements rest.Problems and prom.Problems.
func (p problems) Open() []model.Problem { return p.log.Problems() }

// State implements rest.Problems and prom.Problems.
func (p problems) State(id model.TriggerID) (model.TriggerState, bool) {
	s, recorded := p.log.State(id)
	problem, failure, known := p.evaluated.State(id)
	if known {
		s.TriggerID, s.Problem, s.Error = id, problem, failure
	}
	return s, recorded || known
}

// Find implements rest.Problems.
func (p problems) Find(ctx context.Context, f rest.ProblemFilter) ([]model.Problem, int, error) {
	// What was recorded a moment ago may not be written yet.
	if err := p.log.Flush(ctx); err != nil {
		return nil, 0, err
	}
	return p.db.Problems(ctx, confdb.ProblemFilter{
		Open: f.Open, Host: f.Host, Hosts: f.Hosts, Severities: f.Severities, Search: f.Search, From: f.From, To: f.To, Before: f.Before, Limit: f.Limit,
	})
}

// Items implements rest.Problems.
func (p problems) Items(id model.TriggerID) []model.ItemID {
	t, ok := p.names.cache.Snapshot().Trigger(id)
	if !ok {
		return nil
	}
	e, err := expr.Parse(t.Expression)
	if err != nil {
		return nil
	}
	var ids []model.ItemID
	for _, ref := range e.Refs {
		if item, _, ok := p.names.ItemByKey(ref.Host, ref.Key); ok {
			ids = append(ids, item)
		}
	}
	return ids
}

// OpData implements rest.Problems.
func (p problems) OpData(ctx context.Context, problem *model.Problem) string {
	return p.log.OpData(ctx, problem)
}

// pastReach is how far before the begin of a problem its item's value is looked for.
const pastReach = 7 * 24 * time.Hour

// begunValues reads values of any time from the engine.
type begunValues struct{ engine storage.Engine }

// LastText implements event.Values.
func (v begunValues) LastText(ctx context.Context, item model.ItemID, at int64) (text string, ok bool) {
	r := model.TimeRange{From: at - int64(pastReach), To: at + 1}
	err := v.engine.Read(ctx, storage.Query{Items: []model.ItemID{item}, Range: r, Newest: 1}, func(c *model.Columns) error {
		if len(c.At) > 0 {
			text, ok = columnText(c, len(c.At)-1)
		}
		return nil
	})
	return text, ok && err == nil
}

// columnText is a value as text without a unit; false for one that is no text.
func columnText(c *model.Columns, i int) (string, bool) {
	switch c.Type {
	case model.Float:
		return strconv.FormatFloat(c.Float(i), 'f', -1, 64), true
	case model.Uint:
		return strconv.FormatUint(c.Bits[i], 10), true
	case model.Binary:
		return "", false
	case model.LogEntry:
		text, err := model.LogText(c.Bytes(i))
		return string(text), err == nil
	}
	return string(c.Bytes(i)), true
}

// Marks implements rest.Problems.
func (p problems) Marks(ctx context.Context, id model.EventID) ([]rest.ProblemMark, error) {
	list, err := p.db.ProblemUpdates(ctx, id)
	out := make([]rest.ProblemMark, len(list))
	for i := range list {
		u := &list[i]
		out[i] = rest.ProblemMark{At: u.At / 1e6, Author: u.Author, Done: u.Words(time.Local), Message: u.Message}
	}
	return out, err
}

// importer takes exports in over HTTP.
type importer struct {
	db      *confdb.DB
	refresh func(context.Context) error
}

// Import implements rest.Importer. The new configuration is in force when it returns.
func (i importer) Import(ctx context.Context, content []byte, json bool) (any, error) {
	name := "import.yaml"
	if json {
		name = "import.json"
	}
	options := confdb.ImportOptions{Collected: collectedTypes(), CheckSteps: preproc.CheckSteps, CheckKey: collectors.CheckKey}
	audit := newImportAudit(ctx, i.db, name, content, options)
	report, err := i.db.Import(ctx, name, content, options)
	if err != nil {
		return nil, err
	}
	audit.done(ctx)
	if report.Changed() {
		if err := i.refresh(ctx); err != nil {
			return nil, err
		}
	}
	return report, nil
}

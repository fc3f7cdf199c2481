package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"tidemark/api"
	"tidemark/expr"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/trigger"
	"tidemark/valuecache"
)

// previewRequest asks what a trigger, as a document has it, would have done.
type previewRequest struct {
	// Document is the host's or template's, in JSON; Host the technical name of the host whose values are taken.
	Document json.RawMessage `json:"document"`
	Host     string          `json:"host"`
	// Trigger is the trigger's name in the document; of several with the name the one with the Expression.
	Trigger    string `json:"trigger"`
	Expression string `json:"expression,omitempty"`
	// From and To are Unix milliseconds; without them it is the last 7 days.
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to,omitempty"`
}

// preview is what it would have done.
type preview struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Expression is with macros expanded.
	Expression string `json:"expression"`
	// Fired is how often a problem would have begun; Problems are when, at most 1,000.
	Fired    int              `json:"fired"`
	Problems []previewProblem `json:"problems"`
	// Unknown is why the trigger could not be evaluated at the end of the range; empty when it could.
	Unknown string        `json:"unknown,omitempty"`
	Items   []previewItem `json:"items"`
	// Values is how many were evaluated.
	Values int `json:"values"`
}

const (
	previewRange = 7 * 24 * time.Hour
	// maxPreviewRange bounds a preview, maxPreviewValues the values in memory: three items of every second over a week.
	maxPreviewRange    = 31 * 24 * time.Hour
	maxPreviewValues   = 2_000_000
	maxPreviewBytes    = 128 << 20
	maxPreviewProblems = 1000
	// previewBatch is how many values are evaluated together, previewTick how often timers are looked at.
	previewBatch = 1024
	previewTick  = 30 * time.Second
)

func (c *configurator) previewTrigger(r *http.Request) (any, error) {
	var in previewRequest
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, api.BodyError(err)
	}
	span, err := in.span(time.Now())
	if err != nil {
		return nil, err
	}
	leave, err := c.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	if in.Host == "" {
		return nil, api.BadRequest("choose a host whose values the trigger is tried on")
	}
	if in.Document, err = c.limitOn(r.Context(), in.Document, in.Host); err != nil {
		return nil, err
	}
	x, err := c.draft(r.Context(), in.Document, in.Host)
	if err != nil {
		return nil, err
	}
	t, ok := x.trigger(in.Trigger, in.Expression)
	if !ok {
		return nil, api.NotFound(fmt.Sprintf("the host %s would have no trigger %q: it is not linked to the template, or the trigger has a mistake", in.Host, in.Trigger))
	}
	return c.preview(r.Context(), t, span)
}

// span returns the range that is asked for.
func (in *previewRequest) span(now time.Time) (model.TimeRange, error) {
	span := model.TimeRange{From: in.From * int64(time.Millisecond), To: in.To * int64(time.Millisecond)}
	if in.To == 0 {
		span.To = now.UnixNano()
	}
	if in.From == 0 {
		span.From = span.To - int64(previewRange)
	}
	if span.To <= span.From || span.To-span.From > int64(maxPreviewRange) || in.From < 0 || in.From > 1<<42 || in.To < 0 || in.To > 1<<42 {
		return span, api.BadRequest("from and to are no range of at most 31 days")
	}
	return span, nil
}

// trigger finds a trigger of the host by its name and its expression in the document.
func (x *drafted) trigger(name, expression string) (model.Trigger, bool) {
	found := -1
	for i := range x.config.Triggers {
		t := &x.config.Triggers[i]
		if t.Name == name && (found < 0 || t.Expression == expression) {
			found = i
		}
	}
	if found < 0 {
		return model.Trigger{}, false
	}
	t, ok := x.Trigger(x.config.Triggers[found].ID)
	if !ok {
		return model.Trigger{}, false
	}
	out := *t
	out.Enabled, out.DependsOn = true, nil
	return out, true
}

// preview evaluates a trigger over stored values, as if they came now: by an evaluator and a value cache of its own, with a clock that follows the
// values.
func (c *configurator) preview(ctx context.Context, t model.Trigger, span model.TimeRange) (*preview, error) {
	shown, _ := t.Shown()
	out := &preview{
		From: span.From / int64(time.Millisecond), To: span.To / int64(time.Millisecond), Expression: shown,
		Problems: []previewProblem{}, Items: []previewItem{},
	}
	past := &pastHistory{engine: c.server.engine, now: span.From}
	clock := func() time.Time { return time.Unix(0, past.now) }
	seen := &previewEvents{}
	evaluator := trigger.New(trigger.Options{
		Values: valuecache.New(valuecache.Options{History: past, MaxBytes: maxPreviewBytes, Now: clock}),
		Events: seen, Items: c.server.names, Trends: c.server.hours, Workers: 1, Now: clock,
	})
	if err := evaluator.Apply(ctx, trigger.Changes{Upserts: []model.Trigger{t}}); err != nil {
		return nil, err
	}
	values, err := c.previewValues(ctx, t, span, out)
	if err != nil {
		return nil, err
	}
	if err := replayPast(ctx, evaluator, values, past, span); err != nil {
		return nil, err
	}
	out.Values = len(values.order)
	if _, failure, ok := evaluator.State(t.ID); ok {
		out.Unknown = failure
	}
	seen.problems(out)
	return out, nil
}

// replayPast feeds values in rising time, and lets timers run between them.
func replayPast(ctx context.Context, e *trigger.Evaluator, values *pastValues, past *pastHistory, span model.TimeRange) error {
	b := model.NewBatch()
	defer b.Free()
	lsn := model.LSN(0)
	next := span.From + int64(previewTick)
	tick := func(until int64) error {
		for ; next <= until; next += int64(previewTick) {
			past.now = next
			if err := e.Tick(ctx, time.Unix(0, next)); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return nil
	}
	for at := 0; at < len(values.order); {
		b.Reset()
		if err := tick(values.at(at)); err != nil {
			return err
		}
		for at < len(values.order) && b.Len() < previewBatch && values.at(at) < next {
			values.append(b, at)
			at++
		}
		past.now = b.At[b.Len()-1]
		lsn++
		if err := e.Evaluate(ctx, lsn, b); err != nil {
			return err
		}
	}
	return tick(span.To)
}

// pastHistory is the history as it was at a moment: what came later is not there.
type pastHistory struct {
	engine valuecache.History
	now    int64
}

// Read implements valuecache.History.
func (p *pastHistory) Read(ctx context.Context, q storage.Query, fn func(*model.Columns) error) error {
	q.Range.To = min(q.Range.To, p.now+1)
	if q.Range.From >= q.Range.To {
		return nil
	}
	return p.engine.Read(ctx, q, fn)
}

// previewEvents keeps what the evaluator finds out.
type previewEvents struct {
	changes []model.StateChange
	open    int
}

// Record implements trigger.Events.
func (p *previewEvents) Record(_ context.Context, _ model.LSN, changes []model.StateChange) error {
	for _, c := range changes {
		if !c.Event {
			continue
		}
		p.open = 0
		if c.Problem {
			p.open = 1
		}
		p.changes = append(p.changes, c)
	}
	return nil
}

// OpenProblems implements trigger.Events.
func (p *previewEvents) OpenProblems(model.TriggerID) int { return p.open }

// Problem implements trigger.Events. In a preview nobody closes problems by hand.
func (p *previewEvents) Problem(model.EventID) (model.Problem, bool) { return model.Problem{}, false }

// problems turns the changes into problems with begin and end.
func (p *previewEvents) problems(out *preview) {
	open := -1
	for _, c := range p.changes {
		at := c.At / int64(time.Millisecond)
		switch {
		case c.Problem:
			if out.Fired++; len(out.Problems) < maxPreviewProblems {
				out.Problems = append(out.Problems, previewProblem{From: at})
				if open < 0 {
					open = len(out.Problems) - 1
				}
			}
		case open >= 0:
			for i := open; i < len(out.Problems); i++ {
				out.Problems[i].To = &at
			}
			open = -1
		}
	}
}

// pastValues are values of several items; order is their order of time.
type pastValues struct {
	columns []model.Columns
	order   []valuePlace
}

type valuePlace struct{ column, row int32 }

func (v *pastValues) at(i int) int64 {
	p := v.order[i]
	return v.columns[p.column].At[p.row]
}

// append puts a value into a batch.
func (v *pastValues) append(b *model.Batch, i int) {
	p := v.order[i]
	c, row := &v.columns[p.column], int(p.row)
	if c.Type.InArena() {
		b.AppendBytes(c.Item, c.At[row], c.Type, c.Bytes(row))
		return
	}
	b.Append(c.Item, c.At[row], c.Type, c.Bits[row])
}

// errTooManyValues ends a read that has more values than a preview may.
var errTooManyValues = errors.New("too many values")

// previewValues reads the values of a trigger's items.
func (c *configurator) previewValues(ctx context.Context, t model.Trigger, span model.TimeRange, out *preview) (*pastValues, error) {
	v := &pastValues{}
	refs, err := expressionItems(t.Expression, t.Recovery)
	if err != nil {
		return nil, api.BadRequest("the expression cannot be evaluated: " + err.Error())
	}
	bytes := 0
	for _, ref := range refs {
		id, _, ok := c.server.names.ItemByKey(ref.Host, ref.Key)
		if !ok {
			return nil, api.BadRequest(fmt.Sprintf("there is no item %s on %s with values", ref.Key, ref.Host))
		}
		item := previewItem{ID: fmt.Sprint(uint64(id)), Host: ref.Host, Key: ref.Key}
		err := c.server.engine.Read(ctx, storage.Query{Items: []model.ItemID{id}, Range: span}, func(part *model.Columns) error {
			if bytes += 24*len(part.At) + len(part.Arena); len(v.order)+len(part.At) > maxPreviewValues || bytes > maxPreviewBytes {
				return errTooManyValues
			}
			v.add(part)
			if item.ValuesFrom == nil && len(part.At) > 0 {
				first := part.At[0] / int64(time.Millisecond)
				item.ValuesFrom = &first
			}
			return nil
		})
		switch {
		case errors.Is(err, errTooManyValues), errors.Is(err, storage.ErrTooMuch):
			return nil, &api.Error{
				Status: http.StatusUnprocessableEntity, Code: "limit",
				Message: fmt.Sprintf("the items have more than %d values in this range; choose a shorter one", maxPreviewValues),
			}
		case err != nil:
			return nil, err
		}
		out.Items = append(out.Items, item)
	}
	slices.SortStableFunc(v.order, func(a, b valuePlace) int {
		x, y := v.columns[a.column].At[a.row], v.columns[b.column].At[b.row]
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return v, nil
}

// add copies a part of an item's values.
func (v *pastValues) add(part *model.Columns) {
	column := int32(len(v.columns))
	own := model.Columns{Item: part.Item, Type: part.Type, At: slices.Clone(part.At), Bits: slices.Clone(part.Bits), Arena: slices.Clone(part.Arena)}
	v.columns = append(v.columns, own)
	for row := range own.At {
		v.order = append(v.order, valuePlace{column, int32(row)})
	}
}

// expressionItems lists the items that a trigger names, each once.
func expressionItems(texts ...string) ([]expr.Ref, error) {
	var refs []expr.Ref
	for _, text := range texts {
		if text == "" {
			continue
		}
		e, err := expr.Parse(text)
		if err != nil {
			return nil, err
		}
		if why := e.Program.Broken(); why != "" {
			return nil, errors.New(why)
		}
		for _, r := range e.Refs {
			if !slices.ContainsFunc(refs, func(have expr.Ref) bool { return have.Host == r.Host && have.Key == r.Key }) {
				refs = append(refs, r)
			}
		}
	}
	return refs, nil
}

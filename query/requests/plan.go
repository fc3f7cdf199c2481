package requests

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tidemark/model"
	"tidemark/wire/queryplan"
)

// Plan is how the server said it answers a shape.
type Plan struct {
	*queryplan.Plan
	// At is when the server said it, ChangedAt when it said this summary for the first time after another one, Unix nanoseconds; ChangedAt is zero when
	// the summary was the same as far as was looked.
	At, ChangedAt int64
	// Before is the summary before the change.
	Before string
}

// planBack is how far before a range the plan is looked for: it is asked for from time to time, and only while a shape is among the dearest.
const planBack = 24 * time.Hour

// planKey is the item of the plan of what splitKey calls thing: mongo.shape[…,FINGERPRINT becomes mongo.plan[…,FINGERPRINT].
func planKey(thing string) string {
	return "mongo.plan[" + strings.TrimPrefix(thing, "mongo.shape[") + "]"
}

// plan reads the newest plan up to the end of a range; nil when there is none.
func (r *Reader) plan(ctx context.Context, id model.ItemID, over model.TimeRange) (*Plan, error) {
	if id == 0 {
		return nil, nil
	}
	var newest *Plan
	err := r.querier.Read(ctx, []model.ItemID{id}, model.TimeRange{From: over.From - int64(planBack), To: over.To + 1}, 0, func(c *model.Columns) error {
		if c.Type != model.Text {
			return nil
		}
		for i, at := range c.At {
			p, err := queryplan.Decode(c.Bytes(i))
			if err != nil {
				continue // An agent of another version.
			}
			next := &Plan{Plan: p, At: at}
			if newest != nil {
				next.ChangedAt, next.Before = newest.ChangedAt, newest.Before
				if p.Summary != newest.Summary {
					next.ChangedAt, next.Before = at, newest.Summary
				}
			}
			newest = next
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the plan of a shape: %w", err)
	}
	return newest, nil
}

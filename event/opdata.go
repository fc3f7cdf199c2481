package event

import (
	"context"
	"strings"

	"tidemark/model"
)

// maxPast bounds the values of the past that are kept for the operational data of open problems.
const maxPast = 10_000

// moment is an item at the begin of a problem.
type moment struct {
	event model.EventID
	item  model.ItemID
}

// OpData returns what is shown beside a problem. While it is open, {ITEM.LASTVALUE} in the text of its trigger is the value of now; what tells of
// the begin stays. A problem that is over, or whose trigger is gone or switched off, has the text of its begin. At most 2048 bytes.
func (l *Log) OpData(ctx context.Context, p *model.Problem) string {
	t, ok := l.options.Objects.TriggerByID(p.TriggerID)
	if !ok || !t.Enabled || p.RecoveredAt != 0 || !strings.Contains(t.OpData, "{ITEM.LASTVALUE") {
		return p.OpData
	}
	n := l.namer(t, &p.Event)
	n.later = true
	return cut(n.expand(ctx, t.OpData, 0), maxNameBytes)
}

// pastText returns an item's value at the begin of an event. It is read once.
func (l *Log) pastText(ctx context.Context, e *model.Event, item model.ItemID) (string, bool) {
	key := moment{e.ID, item}
	l.pastMu.Lock()
	text, ok := l.past[key]
	l.pastMu.Unlock()
	if ok {
		return text, true
	}
	if text, ok = l.options.Past.LastText(ctx, item, e.At); !ok {
		return "", false
	}
	text = cut(text, maxNameBytes)
	l.pastMu.Lock()
	defer l.pastMu.Unlock()
	if len(l.past) >= maxPast {
		clear(l.past)
	}
	l.past[key] = text
	return text, true
}

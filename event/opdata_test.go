package event

import (
	"context"
	"testing"

	"tidemark/model"
)

// pastValues answers with the time that it was asked for, once.
type pastValues struct{ asked int }

func (p *pastValues) LastText(context.Context, model.ItemID, int64) (string, bool) {
	p.asked++
	return "1024", true
}

func TestOpData(t *testing.T) {
	const frozen = "as it began"
	past := &pastValues{}
	for _, c := range []struct {
		name, text, want string
		over, off        bool
	}{
		{name: "now", text: "Now: {ITEM.LASTVALUE}", want: "Now: 4 KB"},
		{name: "begin and now", text: "{ITEM.VALUE1} then, {ITEM.LASTVALUE1} now", want: "1 KB then, 4 KB now"},
		{name: "function", text: "{{ITEM.LASTVALUE}.fmtnum(1)}", want: "4096.0"},
		{name: "nothing of now", text: "Was: {ITEM.VALUE}", want: frozen},
		{name: "plain", text: "text", want: frozen},
		{name: "over", text: "Now: {ITEM.LASTVALUE}", want: frozen, over: true},
		{name: "switched off", text: "Now: {ITEM.LASTVALUE}", want: frozen, off: true},
	} {
		m := &memory{triggers: map[model.TriggerID]model.Trigger{1: {ID: 1, OpData: c.text, Expression: "last(/h/key)>1", Enabled: !c.off}}}
		l, _ := open(t, m)
		l.options.Past = past
		p := model.Problem{Event: model.Event{ID: 7, TriggerID: 1, At: 50 * second, Problem: true, OpData: frozen}}
		if c.over {
			p.RecoveredAt = 60 * second
		}
		for range 3 {
			if got := l.OpData(t.Context(), &p); got != c.want {
				t.Errorf("%s: %q, want %q", c.name, got, c.want)
			}
		}
		p.TriggerID = 2
		if got := l.OpData(t.Context(), &p); got != frozen {
			t.Errorf("%s without the trigger: %q", c.name, got)
		}
	}
	if past.asked != 1 {
		t.Errorf("the value of the begin was read %d times", past.asked)
	}
}

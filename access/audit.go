package access

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"tidemark/model"
)

// Changes collects what a request changed, for the audit log.
type Changes struct {
	mu   sync.Mutex
	list []changed
}

// changed is one object and how it was and is.
type changed struct {
	object        string
	before, after any
}

type changesKey struct{}

// WithChanges returns a context whose request may say what it changes.
func WithChanges(ctx context.Context) (context.Context, *Changes) {
	c := &Changes{}
	return context.WithValue(ctx, changesKey{}, c), c
}

// Changed says what a request changed: the object and how it was before and after, as values that are encoded in JSON; nil for nothing.
// The log keeps what is different. Secrets must not be in it; fields that are called like one are left out all the same. Of an object that is named
// again the log has what it was before the first change and is after the last; one named in parts, as objects with other members, has all of them.
func Changed(ctx context.Context, object string, before, after any) {
	c, _ := ctx.Value(changesKey{}).(*Changes)
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	one := changed{object, before, after}
	if i := slices.IndexFunc(c.list, func(o changed) bool { return o.object == object }); i >= 0 {
		c.list[i] = merged(c.list[i], one)
		return
	}
	c.list = append(c.list, one)
}

// Some reports whether anything was said.
func (c *Changes) Some() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.list) > 0
}

// merged is what two changes of one object come to.
func merged(first, second changed) changed {
	return changed{first.object, mergedState(first.before, first.after, second.before), mergedState(second.after, second.before, first.after)}
}

// mergedState adds to a state at one end of two changes the members that only the change at the other end had; next is the state that its own
// change has beside it: what is in that one alone was made or taken away.
func mergedState(state, next, other any) any {
	switch {
	case state == nil && next != nil:
		return nil // the object was not there
	case state == nil:
		return other
	}
	members, ok := plain(state).(map[string]any)
	more, isObject := plain(other).(map[string]any)
	if !ok || !isObject {
		return state
	}
	beside, _ := plain(next).(map[string]any)
	for name, value := range more {
		_, has := members[name]
		if _, changed := beside[name]; !has && !changed {
			members[name] = value
		}
	}
	return members
}

// Entry returns an audit entry of what was said, for an action.
func (c *Changes) Entry(action, address string) model.AuditEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := model.AuditEntry{Action: action, Address: address}
	switch len(c.list) {
	case 0:
		return e
	case 1:
		e.Object = c.list[0].object
		e.Before, e.After = Difference(c.list[0].before, c.list[0].after)
		return e
	}
	before, after := map[string]any{}, map[string]any{}
	names := make([]string, len(c.list))
	for i, one := range c.list {
		names[i] = one.object
		if one.before != nil {
			before[one.object] = one.before
		}
		if one.after != nil {
			after[one.object] = one.after
		}
	}
	e.Object = strings.Join(names, ", ")
	e.Before, e.After = Difference(orNothing(before), orNothing(after))
	return e
}

// Entries is Entry with one entry for each object, for requests that change several of which each is worth one; it has at least one entry.
func (c *Changes) Entries(action, address string) []model.AuditEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]model.AuditEntry, 0, max(1, len(c.list)))
	for _, one := range c.list {
		e := model.AuditEntry{Action: action, Address: address, Object: one.object}
		e.Before, e.After = Difference(one.before, one.after)
		list = append(list, e)
	}
	if len(list) == 0 {
		list = append(list, model.AuditEntry{Action: action, Address: address})
	}
	return list
}

func orNothing(m map[string]any) any {
	if len(m) == 0 {
		return nil
	}
	return m
}

// The bounds of an entry.
const (
	maxAuditJSON = 64 << 10
	maxAuditText = 1 << 10
	auditTimeout = 10 * time.Second
)

// Audit writes an entry in somebody's name. An entry that cannot be written is logged and counted; what it tells of has happened.
func (c *Control) Audit(ctx context.Context, who *Identity, e model.AuditEntry) {
	if who != nil {
		e.Actor, e.Via = who.Name, string(who.Via)
		if who.Via == ViaToken {
			e.Via = "token " + who.TokenName
		}
	}
	e.At = c.o.Now().UnixNano()
	for _, text := range []*string{&e.Actor, &e.Via, &e.Action, &e.Object, &e.Address} {
		*text = strings.ToValidUTF8((*text)[:min(len(*text), maxAuditText)], "")
	}
	// The caller may be gone, the change is not.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTimeout)
	defer cancel()
	if err := c.o.Store.RecordAudit(ctx, e); err != nil {
		c.auditLost.Inc()
		c.logger.Error("an audit entry could not be written", "actor", e.Actor, "action", e.Action, "object", e.Object, "error", err)
	}
}

// AuditEntries lists entries, the newest first.
func (c *Control) AuditEntries(ctx context.Context, f model.AuditFilter) ([]model.AuditEntry, error) {
	return c.o.Store.Audit(ctx, f)
}

// plain gives a value the form that JSON decodes to, without secrets.
func plain(v any) any {
	if v == nil {
		return nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return map[string]any{"error": "cannot be shown"}
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		return map[string]any{"error": "cannot be shown"}
	}
	return redact(out)
}

// secretWords are in the names of fields whose text is never kept.
var secretWords = []string{"password", "passwd", "secret", "psk", "token", "passphrase", "community", "private_key", "privatekey", "authorization", "cookie", "api_key", "api-key", "apikey"}

// namesSecret reports whether what has a name is never kept.
func namesSecret(name string) bool {
	lower := strings.ToLower(name)
	if strings.HasSuffix(lower, "_id") || strings.Contains(lower, "identity") {
		return false
	}
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(lower, word) })
}

func redact(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			v[name] = redact(value)
			if namesSecret(name) {
				v[name] = hide(value)
			}
		}
		// A header, a variable or a parameter of a script tells with its name what it is.
		if name, ok := v["name"].(string); ok && v["value"] != nil && namesSecret(name) {
			v["value"] = hide(v["value"])
		}
	case []any:
		for i := range v {
			v[i] = redact(v[i])
		}
	}
	return v
}

// hide replaces every text in a value.
func hide(v any) any {
	switch v := v.(type) {
	case string:
		if v == "" {
			return v
		}
		return "********"
	case map[string]any:
		for name := range v {
			v[name] = hide(v[name])
		}
	case []any:
		for i := range v {
			v[i] = hide(v[i])
		}
	}
	return v
}

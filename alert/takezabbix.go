package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Taken is what became of the objects of one kind.
type Taken struct {
	Kind                                 string
	Created, Updated, Unchanged, Refused int
}

// TakeRemark is what is to be known of one object.
type TakeRemark struct{ Path, Reason string }

// taking is one import from Zabbix; the alerter's mu is held.
type taking struct {
	*Alerter
	taken   []Taken
	remarks []TakeRemark
}

// TakeZabbix puts objects that come from Zabbix over those that came from there before. Media types and actions are switched off and wait
// for Cutover if they are on in Zabbix; those that are here already stay on or off as they are. Objects of the same name that did not come
// from Zabbix stay as they are. An object that cannot be is left out with a remark; the others are taken.
func (a *Alerter) TakeZabbix(ctx context.Context, c *Config) ([]Taken, []TakeRemark, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := &taking{Alerter: a}
	for _, m := range c.Media {
		if err := t.media(ctx, m); err != nil {
			return nil, nil, err
		}
	}
	for _, r := range c.Receivers {
		if err := t.receiver(ctx, r); err != nil {
			return nil, nil, err
		}
	}
	for _, m := range c.Maintenances {
		m.Origin = OriginZabbix
		old := find(a.config.Maintenances, func(o *Maintenance) bool { return o.Name == m.Name })
		own := old != nil && old.Origin != OriginZabbix
		if err := t.put(ctx, object{"maintenances", "maintenance " + m.Name, own, same(old, &m), old != nil}, &Config{Maintenances: []Maintenance{m}}); err != nil {
			return nil, nil, err
		}
	}
	for _, o := range c.Actions {
		if err := t.action(ctx, o); err != nil {
			return nil, nil, err
		}
	}
	return t.taken, t.remarks, nil
}

// object is an object that is to be taken.
type object struct {
	kind, path string
	// own says that one of the name is here that did not come from Zabbix, same that it is as it was, known that there was one.
	own, same, known bool
}

// put takes one object.
func (t *taking) put(ctx context.Context, o object, c *Config) error {
	n := t.count(o.kind)
	switch {
	case o.own:
		n.Refused++
		t.remark(o.path, "one of this name is here that did not come from Zabbix; it stays as it is. Rename it to have that of Zabbix too")
		return nil
	case o.same:
		n.Unchanged++
		return nil
	}
	err := t.apply(ctx, t.config.merge(c))
	switch {
	case errors.Is(err, ErrInvalid):
		n.Refused++
		t.remark(o.path, "%s", strings.TrimPrefix(err.Error(), ErrInvalid.Error()+": "))
	case err != nil:
		return err
	case o.known:
		n.Updated++
	default:
		n.Created++
	}
	return nil
}

func (t *taking) count(kind string) *Taken {
	at := slices.IndexFunc(t.taken, func(n Taken) bool { return n.Kind == kind })
	if at < 0 {
		at = len(t.taken)
		t.taken = append(t.taken, Taken{Kind: kind})
	}
	return &t.taken[at]
}

func (t *taking) remark(path, format string, args ...any) {
	t.remarks = append(t.remarks, TakeRemark{path, fmt.Sprintf(format, args...)})
}

func find[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// same compares as stored.
func same[T any](old, next *T) bool {
	if old == nil {
		return false
	}
	x, errX := json.Marshal(old)
	y, errY := json.Marshal(next)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// standing is whether an object is off, and whether it waits for the end of shadow mode.
type standing struct{ off, waits bool }

// next is the standing of an object that is off or on in Zabbix, after old, its standing here.
func (t *taking) next(offThere bool, old *standing) (off, waits bool) {
	switch {
	case old == nil:
		return true, !offThere
	case !old.off: // somebody switched it on here
		return false, false
	case t.config.Shadow == nil && !old.waits: // switched off after the cutover
		return true, false
	}
	return true, !offThere
}

func (t *taking) media(ctx context.Context, m Media) error {
	m.Origin = OriginZabbix
	old := find(t.config.Media, func(o *Media) bool { return o.Name == m.Name })
	var was *standing
	if old != nil {
		was = &standing{old.Disabled, old.AwaitsCutover}
	}
	m.Disabled, m.AwaitsCutover = t.next(m.Disabled, was)
	own := old != nil && old.Origin != OriginZabbix
	return t.put(ctx, object{"media types", "media type " + m.Name, own, same(old, &m), old != nil}, &Config{Media: []Media{m}})
}

// receiver takes a receiver with those of its media that can be.
func (t *taking) receiver(ctx context.Context, r Receiver) error {
	r.Origin = OriginZabbix
	path := "receiver " + r.Name
	r.Media = slices.DeleteFunc(slices.Clone(r.Media), func(m ReceiverMedia) bool {
		one := Receiver{Media: []ReceiverMedia{m}}
		err := one.check(t.plan)
		if err != nil {
			t.remark(path, "an address is not taken: %s", strings.TrimPrefix(err.Error(), "media 1: "))
		}
		return err != nil
	})
	old := find(t.config.Receivers, func(o *Receiver) bool { return o.Name == r.Name })
	own := old != nil && old.Origin != OriginZabbix
	if len(r.Media) == 0 && old == nil {
		t.count("receivers").Refused++
		t.remark(path, "none of the addresses can be used")
		return nil
	}
	return t.put(ctx, object{"receivers", path, own, same(old, &r), old != nil}, &Config{Receivers: []Receiver{r}})
}

// action takes an action with those of its operations that can be.
func (t *taking) action(ctx context.Context, o Action) error {
	o.Origin = OriginZabbix
	path := "action " + o.Name
	o.Operations = t.operations(path, o.Operations, true)
	o.Recovery = t.operations(path, o.Recovery, false)
	o.Update = t.operations(path, o.Update, false)
	old := find(t.config.Actions, func(x *Action) bool { return x.Name == o.Name })
	var was *standing
	if old != nil {
		was = &standing{old.Disabled, old.AwaitsCutover}
	}
	o.Disabled, o.AwaitsCutover = t.next(o.Disabled, was)
	own := old != nil && old.Origin != OriginZabbix
	return t.put(ctx, object{"actions", path, own, same(old, &o), old != nil}, &Config{Actions: []Action{o}})
}

// operations leaves out those that cannot be, and receivers that are not there.
func (t *taking) operations(path string, list []Operation, steps bool) []Operation {
	if list == nil {
		return nil
	}
	out := []Operation{}
	for _, o := range list {
		o.Receivers = slices.DeleteFunc(slices.Clone(o.Receivers), func(name string) bool { return t.plan.receivers[name] == nil })
		if err := o.check(t.plan, steps); err != nil {
			t.remark(path, "an operation is not taken: %v", err)
			continue
		}
		out = append(out, o)
	}
	return out
}

package zabbix

import (
	"slices"

	"tidemark/access"
	"tidemark/model"
)

// What a call changes of hosts and templates is gathered and put in one transaction once all of its objects are read, so that a call that ends
// with an error has changed nothing.

// hostState is what is to become of a host besides its document.
type hostState struct {
	HostState
	host *model.Host
}

// changes reports whether it is to become anything.
func (s *hostState) changes() bool {
	return s.Enabled != nil || s.Proxy != nil || len(s.Link)+len(s.Unlink) > 0
}

// tell tells the audit log.
func (s *hostState) tell(c *call) {
	if s.Enabled != nil || len(s.Link)+len(s.Unlink) > 0 {
		enabled := s.host.Enabled
		if s.Enabled != nil {
			enabled = *s.Enabled
		}
		access.Changed(c.ctx, "host "+s.host.Host, map[string]any{"enabled": s.host.Enabled, "templates": s.host.Templates},
			map[string]any{"enabled": enabled, "link": s.Link, "unlink": s.Unlink})
	}
	if s.Proxy != nil {
		access.Changed(c.ctx, "proxy of host "+s.host.Host, nil, *s.Proxy)
	}
}

// edit reads the document of a host or template that is to be changed, once for a call: later objects see what earlier ones changed.
func (c *call) edit(kind, name string) (*owner, error) {
	if i := slices.IndexFunc(c.pending, func(o *owner) bool { return o.kind == kind && o.name == name }); i >= 0 {
		return c.pending[i], nil
	}
	o, err := c.readOwner(kind, name)
	if err == nil {
		c.pending = append(c.pending, o)
	}
	return o, err
}

// made adds a host or template that is to be made.
func (c *call) made(o *owner) {
	o.create = true
	c.pending = append(c.pending, o)
}

// putAll makes all changes of the call, or none of them, and tells the audit log.
func (c *call) putAll() error {
	var list []Document
	for _, o := range c.pending {
		if len(o.after) == 0 {
			continue
		}
		one, err := encodeJSON([]any{o.members})
		if err != nil {
			return err
		}
		o.document.Export[o.kind+"s"] = one
		text, err := encodeJSON(o.document)
		if err != nil {
			return err
		}
		list = append(list, Document{Kind: o.kind, Name: o.name, Text: text, Create: o.create})
	}
	var states []HostState
	for _, s := range c.states {
		if s.changes() {
			states = append(states, s.HostState)
		}
	}
	if len(list)+len(states) > 0 {
		if err := c.options.Objects.PutDocuments(c.ctx, list, states); err != nil {
			return notAllowed(err)
		}
	}
	for _, o := range c.pending {
		var before any = o.before
		if o.create {
			before = nil
		}
		if len(o.after) > 0 {
			access.Changed(c.ctx, o.kind+" "+o.name, before, o.after)
		}
	}
	for _, s := range c.states {
		s.tell(c)
	}
	c.pending, c.states = nil, nil
	return nil
}

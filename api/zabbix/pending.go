package zabbix

import (
	"slices"

	"tidemark/access"
)

// What a call changes of hosts and templates is gathered and put in one transaction once all of its objects are read, so that a call that ends
// with an error has changed nothing.

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
	if len(list) > 0 {
		if err := c.options.Objects.PutDocuments(c.ctx, list); err != nil {
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
	c.pending = nil
	return nil
}

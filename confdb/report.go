package confdb

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxRemarks bounds a report; more remarks are only counted.
const maxRemarks = 1000

// Report says what an import took and what it did not.
type Report struct {
	// File is the name that was given to Import.
	File string `json:"file"`
	// Version is the export's version: "6.0", "6.4", "7.0".
	Version string `json:"version"`
	// Counts has one entry for each kind of object that the file holds, in a fixed order.
	Counts []Count `json:"counts"`
	// Remarks are what was not taken, or was kept but has no effect, in the order of the file.
	Remarks []Remark `json:"remarks"`
	// MoreRemarks counts the remarks beyond the first 1,000.
	MoreRemarks int `json:"more_remarks,omitempty"`
	// Plan says that nothing was changed: the counts are what would become of the objects.
	Plan bool `json:"plan,omitempty"`
	// Owner is the technical name of the host or template, when the file holds one.
	Owner string `json:"owner,omitempty"`
	// Objects are those that were created, updated or deleted, the first 1,000.
	Objects []Object `json:"objects,omitempty"`
	// Kept are the templates of a file that ships with the program that were left alone, each with the reason.
	Kept []string `json:"-"`
	// more says that a remark beyond the first 1,000 was about something that is not taken.
	more bool
}

// Object is one that an import changes.
type Object struct {
	// What is created, updated or deleted.
	What string `json:"what"`
	Kind string `json:"kind"`
	// Owner is the host or template, empty for groups; Name the item's or rule's key, or the name.
	Owner string `json:"owner,omitempty"`
	Name  string `json:"name"`
}

// maxObjects bounds the objects of a report.
const maxObjects = 1000

// Count tells what became of the objects of one kind.
type Count struct {
	Kind      string `json:"kind"`
	Created   int    `json:"created"`
	Updated   int    `json:"updated"`
	Unchanged int    `json:"unchanged"`
	Deleted   int    `json:"deleted,omitempty"`
	// Refused objects are named in the remarks.
	Refused int `json:"refused,omitempty"`
}

// Remark is about one place of the file.
type Remark struct {
	// Path is the object and field: "template Linux, item system.cpu.load, preprocessing[2]".
	Path string `json:"path"`
	// Line in the file, from 1.
	Line int `json:"line"`
	// Reason says what was found and what becomes of it.
	Reason string `json:"reason"`
	// At is the place as a path behind zabbix_export: hosts[0].items[3].delay.
	At string `json:"at,omitempty"`
	// Refused says that something is not taken; else it is, and the remark is a warning.
	Refused bool `json:"refused,omitempty"`
}

// The kinds of objects in reports, in their order.
const (
	kindGlobalMacro  = "global macros"
	kindRegexp       = "regular expressions"
	kindGroup        = "groups"
	kindTemplate     = "templates"
	kindHost         = "hosts"
	kindValueMap     = "value maps"
	kindItem         = "items"
	kindScenario     = "web scenarios"
	kindRule         = "discovery rules"
	kindItemProto    = "item prototypes"
	kindTrigger      = "triggers"
	kindTriggerProto = "trigger prototypes"
	kindGraph        = "graphs"
	kindGraphProto   = "graph prototypes"
	kindHostProto    = "host prototypes"
)

var kindOrder = [...]string{
	kindGlobalMacro, kindRegexp, kindGroup, kindTemplate, kindHost, kindValueMap, kindItem, kindScenario, kindRule, kindItemProto, kindTrigger, kindTriggerProto,
	kindGraph, kindGraphProto, kindHostProto,
}

// outcome is what became of one object.
type outcome uint8

const (
	unchanged outcome = iota
	created
	updated
	deleted
	refused
)

func (r *Report) count(kind string, o outcome) {
	var c *Count
	for i := range r.Counts {
		if r.Counts[i].Kind == kind {
			c = &r.Counts[i]
		}
	}
	if c == nil {
		r.Counts = append(r.Counts, Count{Kind: kind})
		c = &r.Counts[len(r.Counts)-1]
	}
	switch o {
	case unchanged:
		c.Unchanged++
	case created:
		c.Created++
	case updated:
		c.Updated++
	case deleted:
		c.Deleted++
	case refused:
		c.Refused++
	}
}

// promote counts an object as updated that was counted as unchanged.
func (r *Report) promote(kind string) {
	for i := range r.Counts {
		if c := &r.Counts[i]; c.Kind == kind {
			c.Unchanged--
			c.Updated++
		}
	}
}

func (r *Report) remark(path string, line int, format string, args ...any) {
	// By their form remarks say what becomes of the object: it is not taken or linked, or kept.
	refused := strings.HasSuffix(format, "not taken") || strings.HasSuffix(format, "not linked")
	if len(r.Remarks) >= maxRemarks {
		r.MoreRemarks++
		r.more = r.more || refused
		return
	}
	r.Remarks = append(r.Remarks, Remark{Path: path, Line: line, Reason: fmt.Sprintf(format, args...), Refused: refused})
}

// lost reports whether anything of the file is not taken.
func (r *Report) lost() bool {
	return r.more || slices.ContainsFunc(r.Remarks, func(m Remark) bool { return m.Refused }) ||
		slices.ContainsFunc(r.Counts, func(c Count) bool { return c.Refused > 0 })
}

// object notes an object that is not as it was.
func (r *Report) object(kind, owner, name string, o outcome) {
	if o == unchanged || o == refused || len(r.Objects) == maxObjects {
		return
	}
	what := [...]string{created: "created", updated: "updated", deleted: "deleted"}[o]
	if n := len(r.Objects); n > 0 && r.Objects[n-1] == (Object{what, kind, owner, name}) {
		return
	}
	r.Objects = append(r.Objects, Object{What: what, Kind: kind, Owner: owner, Name: name})
}

// finish sorts the report and gives the remarks their places in the file.
func (r *Report) finish(tree *node) {
	slices.SortStableFunc(r.Remarks, func(a, b Remark) int { return cmp.Compare(a.Line, b.Line) })
	r.sort()
	if len(r.Remarks) == 0 {
		return
	}
	wanted := make(map[int]string, len(r.Remarks))
	for _, m := range r.Remarks {
		wanted[m.Line] = ""
	}
	tree.field("zabbix_export").places("", wanted)
	for i := range r.Remarks {
		r.Remarks[i].At = wanted[r.Remarks[i].Line]
	}
}

// places finds the outermost value of each wanted line, and its path.
func (n *node) places(path string, wanted map[int]string) {
	if n == nil {
		return
	}
	if at, ok := wanted[n.line]; ok && at == "" {
		wanted[n.line] = path
	}
	for i, kid := range n.kids {
		switch {
		case n.kind == listNode:
			kid.places(path+"["+strconv.Itoa(i)+"]", wanted)
		case path == "":
			kid.places(n.keys[i], wanted)
		default:
			kid.places(path+"."+n.keys[i], wanted)
		}
	}
}

// sort puts the counts into their fixed order.
func (r *Report) sort() {
	var counts []Count
	for _, kind := range kindOrder {
		for _, c := range r.Counts {
			if c.Kind == kind {
				counts = append(counts, c)
			}
		}
	}
	r.Counts = counts
}

// Changed reports whether the import changed anything.
func (r *Report) Changed() bool {
	for _, c := range r.Counts {
		if c.Created+c.Updated+c.Deleted > 0 {
			return true
		}
	}
	return false
}

// String is the report for a terminal.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: Zabbix export %s\n", r.File, r.Version)
	if r.Plan {
		b.WriteString("  this is the plan; nothing was changed\n")
		for _, o := range r.Objects {
			fmt.Fprintf(&b, "  %s: %s: %s\n", o.What, strings.TrimSuffix(o.Kind, "s"), strings.TrimPrefix(o.Owner+", "+o.Name, ", "))
		}
	}
	for _, c := range r.Counts {
		fmt.Fprintf(&b, "  %s: %d created, %d updated, %d unchanged", c.Kind, c.Created, c.Updated, c.Unchanged)
		if c.Deleted > 0 {
			fmt.Fprintf(&b, ", %d deleted", c.Deleted)
		}
		if c.Refused > 0 {
			fmt.Fprintf(&b, ", %d refused", c.Refused)
		}
		b.WriteByte('\n')
	}
	for _, m := range r.Remarks {
		fmt.Fprintf(&b, "  line %d: %s: %s\n", m.Line, m.Path, m.Reason)
	}
	if r.MoreRemarks > 0 {
		fmt.Fprintf(&b, "  and %d more remarks\n", r.MoreRemarks)
	}
	return b.String()
}

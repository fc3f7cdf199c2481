package confdb

import (
	"fmt"
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
}

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
}

// The kinds of objects in reports, in their order.
const (
	kindGlobalMacro  = "global macros"
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
	kindGlobalMacro, kindGroup, kindTemplate, kindHost, kindValueMap, kindItem, kindScenario, kindRule, kindItemProto, kindTrigger, kindTriggerProto,
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
	if len(r.Remarks) >= maxRemarks {
		r.MoreRemarks++
		return
	}
	r.Remarks = append(r.Remarks, Remark{Path: path, Line: line, Reason: fmt.Sprintf(format, args...)})
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

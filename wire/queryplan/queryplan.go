// Package queryplan is the form in which an agent tells how a MongoDB server answers a shape: the text of mongo.plan[INSTANCE,FINGERPRINT].
//
// It is JSON, and holds names of stages, indexes and fields, and numbers; never a value of a field.
package queryplan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The limits of one plan. Encode cuts what is longer; Decode refuses it.
const (
	MaxBytes     = 8 << 10
	MaxStages    = 24
	MaxIndexes   = 16
	MaxHints     = 4
	MaxNameBytes = 160
)

// Plan is how the server answers a shape, as far as it says it.
type Plan struct {
	// Summary is in the server's words: "COLLSCAN", or "IXSCAN {status: 1}"; empty where the server was not asked or did not say.
	Summary string `json:"summary,omitempty"`
	// Stages are those of the plan, the outermost first.
	Stages []string `json:"stages,omitempty"`
	// Scans says that a stage reads the whole collection; Sorts that one sorts in memory.
	Scans bool `json:"scans,omitempty"`
	Sorts bool `json:"sorts,omitempty"`
	// Used are the names of the indexes that the plan reads.
	Used []string `json:"used,omitempty"`
	// Rejected is how many other plans the server weighed.
	Rejected int `json:"rejected,omitempty"`
	// Trial is what the server measured when it chose the plan that it keeps; nil where it keeps none or does not tell.
	Trial *Trial `json:"trial,omitempty"`
	// Indexes are those of the collection, at most MaxIndexes; IndexesKnown says that the server told them.
	Indexes      []Index `json:"indexes,omitempty"`
	IndexesKnown bool    `json:"indexes_known,omitempty"`
	// Hints are indexes that would serve the shape and are not there.
	Hints []Hint `json:"hints,omitempty"`
	// Notes say what could not be told, and why.
	Notes []string `json:"notes,omitempty"`
}

// Trial is what the plan did before it was kept.
type Trial struct {
	Documents uint64 `json:"documents"`
	Keys      uint64 `json:"keys"`
	Returned  uint64 `json:"returned"`
}

// Index is an index of the collection.
type Index struct {
	Name string `json:"name"`
	// Key is its specification: "{status: 1, created: -1}".
	Key string `json:"key"`
	// Uses is how often it was used since the server's start, nil where it is not told.
	Uses *uint64 `json:"uses,omitempty"`
}

// Hint is an index that is missing.
type Hint struct {
	// Key is its specification.
	Key string `json:"key"`
	// Why says which parts of the shape it serves.
	Why string `json:"why"`
}

// Encode writes a plan, cut to the limits.
func Encode(p *Plan) string {
	c := *p
	c.Summary = cut(c.Summary)
	c.Stages, c.Used, c.Notes = cutAll(c.Stages, MaxStages), cutAll(c.Used, MaxIndexes), cutAll(c.Notes, MaxHints)
	c.Indexes = slices.Clone(c.Indexes[:min(len(c.Indexes), MaxIndexes)])
	for i := range c.Indexes {
		c.Indexes[i].Name, c.Indexes[i].Key = cut(c.Indexes[i].Name), cut(c.Indexes[i].Key)
	}
	c.Hints = slices.Clone(c.Hints[:min(len(c.Hints), MaxHints)])
	for i := range c.Hints {
		c.Hints[i].Key, c.Hints[i].Why = cut(c.Hints[i].Key), cut(c.Hints[i].Why)
	}
	for {
		text, err := json.Marshal(&c)
		if err == nil && len(text) <= MaxBytes || !c.shrink() {
			return string(text)
		}
	}
}

// shrink drops a half of the longest list that may be dropped; false when there is nothing left. It is only for names that JSON makes long.
func (p *Plan) shrink() bool {
	switch {
	case len(p.Indexes) > 0:
		p.Indexes = p.Indexes[:len(p.Indexes)/2]
	case len(p.Stages) > 1:
		p.Stages = p.Stages[:len(p.Stages)/2]
	case len(p.Used) > 0:
		p.Used = p.Used[:len(p.Used)/2]
	case len(p.Notes) > 0:
		p.Notes = p.Notes[:len(p.Notes)/2]
	case len(p.Hints) > 0:
		p.Hints = p.Hints[:len(p.Hints)/2]
	default:
		return false
	}
	return true
}

func cut(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= MaxNameBytes {
		return s
	}
	end := MaxNameBytes - len("…")
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

func cutAll(list []string, limit int) []string {
	out := slices.Clone(list[:min(len(list), limit)])
	for i := range out {
		out[i] = cut(out[i])
	}
	return out
}

// Decode reads what Encode wrote.
func Decode(text []byte) (*Plan, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("query plan: %d bytes; at most %d are allowed", len(text), MaxBytes)
	}
	var p *Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("query plan: %w", err)
	}
	switch {
	case p == nil:
		return nil, fmt.Errorf("query plan: null; expected an object")
	case len(p.Stages) > MaxStages || len(p.Indexes) > MaxIndexes || len(p.Used) > MaxIndexes || len(p.Hints) > MaxHints || len(p.Notes) > MaxHints:
		return nil, fmt.Errorf("query plan: a list is too long")
	}
	return p, nil
}

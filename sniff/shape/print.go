package shape

import (
	"bytes"
	"slices"
	"strconv"

	"tidemark/wire/bson"
)

// mode says what of scalars belongs to a shape at a place.
type mode uint8

const (
	// maskAll: every scalar is "?".
	maskAll mode = iota
	// keepDirections: 1 and -1 and index kinds ("text", "2dsphere", "hashed") stay, and keys keep their order: sort and index
	// specifications.
	keepDirections
	// keepPaths: strings that name a field, "$a.b", stay: stages of a pipeline other than $match.
	keepPaths
	// inPipeline: the elements of this array are stages.
	inPipeline
	// inFacet: the fields of this document are pipelines.
	inFacet
)

// expressions are the stages whose strings may name fields. What is in any other stage may be a value: the query of $geoNear, the text of
// $search.
var expressions = map[string]bool{
	"$addFields": true, "$set": true, "$unset": true, "$project": true, "$group": true, "$replaceRoot": true, "$replaceWith": true, "$unwind": true,
	"$bucket": true, "$bucketAuto": true, "$sortByCount": true, "$redact": true, "$lookup": true, "$graphLookup": true, "$unionWith": true,
	"$setWindowFields": true, "$fill": true, "$densify": true,
}

// childMode returns the mode of the value under key in a document of the given mode.
func childMode(in mode, key []byte) mode {
	if len(key) == 0 || key[0] != '$' {
		switch in {
		case inPipeline:
			return maskAll
		case inFacet:
			return inPipeline
		case keepPaths:
			switch string(key) {
			case "pipeline":
				return inPipeline
			case "sortBy":
				return keepDirections
			case "restrictSearchWithMatch":
				return maskAll
			}
		}
		return in
	}
	switch string(key) {
	case "$match", "$literal", "$elemMatch":
		return maskAll
	case "$sort":
		return keepDirections
	case "$expr":
		return keepPaths
	case "$facet":
		if in == inPipeline {
			return inFacet
		}
	}
	if in == inPipeline {
		if expressions[string(key)] {
			return keepPaths
		}
		return maskAll
	}
	return in
}

// direction returns a sort direction: 1, -1, or a hash of an index kind's name.
func direction(e *bson.Element) (int64, bool) {
	if n, ok := e.Integer(); ok && (n == 1 || n == -1) {
		return n, true
	}
	if k := indexKind(e); k != "" {
		return int64(k[0])<<8 | int64(len(k)), true
	}
	return 0, false
}

// indexKind returns the name of a special index, or "".
func indexKind(e *bson.Element) string {
	switch t := e.Text(); string(t) {
	case "text":
		return "text"
	case "2d":
		return "2d"
	case "2dsphere":
		return "2dsphere"
	case "hashed":
		return "hashed"
	}
	return ""
}

// maxPathBytes bounds a field path that is kept.
const maxPathBytes = 64

// fieldPath returns the string of an element if it names a field or a variable of a pipeline: "$a.b" or "$$ROOT", made of letters,
// digits, "_", "." and "$" only. Anything else may be a value.
func fieldPath(e *bson.Element) []byte {
	if e.Kind != bson.String || len(e.Value) < 7 || e.Value[4] != '$' {
		return nil
	}
	t := e.Text()
	if len(t) < 2 || len(t) > maxPathBytes {
		return nil
	}
	for _, c := range t {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '$' {
			return nil
		}
	}
	return t
}

// printer prints normal forms.
type printer struct {
	nodes int
}

// value prints a value.
func (p *printer) value(dst []byte, e *bson.Element, depth int, in mode) []byte {
	p.nodes++
	switch e.Kind {
	case bson.Document, bson.Array:
		if depth >= maxDepth || p.nodes > maxNodes {
			return append(dst, "…"...)
		}
		if e.Kind == bson.Array {
			return p.array(dst, e.Value, depth+1, in)
		}
		return p.document(dst, e.Value, depth+1, in)
	}
	switch in {
	case keepDirections:
		if n, ok := e.Integer(); ok && (n == 1 || n == -1) {
			return strconv.AppendInt(dst, n, 10)
		}
		if k := indexKind(e); k != "" {
			return append(append(append(dst, '"'), k...), '"')
		}
	case keepPaths:
		if t := fieldPath(e); t != nil {
			return appendKey(dst, t)
		}
	}
	return append(dst, '?')
}

// document prints a document: keys sorted unless their order has a meaning.
func (p *printer) document(dst, doc []byte, depth int, in mode) []byte {
	r, err := bson.NewReader(doc)
	if err != nil {
		return append(dst, "{…}"...)
	}
	var fields [][]byte
	var e bson.Element
	only := bson.Element{}
	cut := false
	for {
		ok, err := r.Next(&e)
		cut = cut || err != nil
		if !ok {
			break
		}
		only = e
		field := appendKey(nil, e.Key)
		field = append(field, ": "...)
		fields = append(fields, p.field(field, &e, depth, in))
	}
	if in == maskAll && len(fields) == 1 && !cut && string(only.Key) == "$eq" {
		// {a: {$eq: 1}} is {a: 1}; in an expression $eq compares two values and stays.
		return p.value(dst, &only, depth, in)
	}
	if in != keepDirections {
		slices.SortFunc(fields, bytes.Compare)
		fields = slices.CompactFunc(fields, bytes.Equal)
	}
	return join(dst, '{', '}', fields, cut)
}

// field prints the value of one field behind its key.
func (p *printer) field(dst []byte, e *bson.Element, depth int, in mode) []byte {
	next := childMode(in, e.Key)
	if e.Kind == bson.Array && depth < maxDepth && p.nodes <= maxNodes {
		return p.array(dst, e.Value, depth+1, next)
	}
	return p.value(dst, e, depth, next)
}

// array prints an array. Scalars are one "?" however many there are; documents are printed once each, sorted unless they are stages
// of a pipeline.
func (p *printer) array(dst, doc []byte, depth int, in mode) []byte {
	r, err := bson.NewReader(doc)
	if err != nil {
		return append(dst, "[…]"...)
	}
	ordered := in == inPipeline || in == keepPaths
	var items [][]byte
	var e bson.Element
	cut, empty, masked := false, true, false
	for {
		ok, err := r.Next(&e)
		cut = cut || err != nil
		if !ok {
			break
		}
		empty = false
		if e.Kind != bson.Document && e.Kind != bson.Array && (in != keepPaths || fieldPath(&e) == nil) {
			// A run of values is one "?"; where order has no meaning, all of them are.
			if !masked {
				items = append(items, []byte("?"))
			}
			masked = true
			continue
		}
		masked = masked && !ordered
		items = append(items, p.value(nil, &e, depth, in))
	}
	if empty && !ordered {
		// An empty list of values is a list of any length.
		items = append(items, []byte("?"))
	}
	if !ordered {
		slices.SortFunc(items, bytes.Compare)
		items = slices.CompactFunc(items, bytes.Equal)
	}
	return join(dst, '[', ']', items, cut)
}

func join(dst []byte, left, right byte, parts [][]byte, cut bool) []byte {
	dst = append(dst, left)
	for i, f := range parts {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(dst, f...)
	}
	if cut {
		if len(parts) > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(dst, "…"...)
	}
	return append(dst, right)
}

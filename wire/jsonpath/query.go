package jsonpath

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxSteps bounds the values that one query may look at, so that a path such as $..[?(@..a)] cannot hold up the program.
const maxSteps = 50_000_000

// ErrTooMuch is returned when a query looks at too many values.
var ErrTooMuch = errors.New("the JSONPath looks at too many values of the document")

// query is one run of a path over a document.
type query struct {
	*Document
	// steps are the values that it looked at, at most limit.
	steps, limit int
	// room is scratch of follow.
	room []uint32
}

// result is what a path has found so far.
type result struct {
	nodes []uint32
	// names are the results of ~ instead of nodes.
	names   []string
	isNames bool
	// scalar is the result of a function, if isScalar.
	scalar   string
	isScalar bool
	definite bool
}

func (r *result) empty() bool { return !r.isScalar && len(r.nodes) == 0 && len(r.names) == 0 }

// Query returns what a path finds: text without quotes, all else as it stands in the document; a path that may find several
// values gives a list. found is false when it finds nothing.
func (d *Document) Query(p *Path) (text []byte, found bool, err error) {
	q := query{Document: d, limit: maxSteps}
	r, err := q.walk(p.segments, 0)
	if err != nil {
		return nil, false, err
	}
	if r.empty() {
		return nil, false, nil
	}
	if r.isScalar || r.definite {
		return q.firstText(&r), true, nil
	}
	out := []byte{'['}
	for i, n := range r.nodes {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, d.raw(n)...)
	}
	for i, name := range r.names {
		if i > 0 {
			out = append(out, ',')
		}
		out = AppendQuoted(out, []byte(name))
	}
	return append(out, ']'), true, nil
}

// firstText returns the first value of a result that is not empty.
func (q *query) firstText(r *result) []byte {
	switch {
	case r.isScalar:
		return []byte(r.scalar)
	case r.isNames:
		return []byte(r.names[0])
	}
	return q.appendText(nil, r.nodes[0])
}

// walk follows segments from a node.
func (q *query) walk(segments []segment, from uint32) (result, error) {
	r := result{nodes: []uint32{from}, definite: true}
	for i := range segments {
		s := &segments[i]
		var err error
		switch {
		case r.isScalar:
			err = errors.New("nothing can follow a function whose result is a number")
		case s.kind == segFunction:
			err = q.apply(s.function, &r)
		case r.isNames:
			err = errors.New("only a function can follow ~")
		case s.kind == segKeys:
			q.keys(&r)
		default:
			r.definite = r.definite && s.definite()
			r.nodes, err = q.step(s, r.nodes)
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// step applies a segment to each node.
func (q *query) step(s *segment, from []uint32) ([]uint32, error) {
	var out []uint32
	if len(from) == 1 && s.definite() {
		out = from[:0]
	}
	var err error
	for _, n := range from {
		if !s.detached {
			if out, err = q.children(s, n, out); err != nil {
				return nil, err
			}
			continue
		}
		// The nodes of a subtree follow each other in the order of the text.
		for i := n; i < q.nodes[n].after; i++ {
			if out, err = q.children(s, i, out); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// children appends the children of a node that a segment matches.
func (q *query) children(s *segment, n uint32, out []uint32) ([]uint32, error) {
	parent := &q.nodes[n]
	if q.steps += int(parent.count) + 1; q.steps > q.limit {
		return nil, ErrTooMuch
	}
	if parent.count == 0 {
		return out, nil
	}
	switch s.kind {
	case segNames:
		if parent.kind != kindObject {
			return out, nil
		}
		for _, name := range s.names {
			for c := n + 1; c < parent.after; c = q.nodes[c].after {
				if q.isNamed(c, name) {
					out = append(out, c)
					break
				}
			}
		}
		return out, nil
	case segIndexes, segSlice:
		if parent.kind != kindList {
			return out, nil
		}
		return q.elements(s, n, out), nil
	}
	for c := n + 1; c < parent.after; c = q.nodes[c].after {
		if s.kind == segFilter {
			v, err := q.evaluate(s.filter, c)
			if err != nil {
				return nil, err
			}
			if !v.truth() {
				continue
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// elements appends the elements of a list by index or slice.
func (q *query) elements(s *segment, n uint32, out []uint32) []uint32 {
	count := int(q.nodes[n].count)
	position := func(i int) int {
		if i < 0 {
			i += count
		}
		return i
	}
	if s.kind == segSlice {
		from, to := 0, count
		if s.from != nil {
			from = max(0, position(*s.from))
		}
		if s.to != nil {
			to = min(count, position(*s.to))
		}
		i := 0
		for c := n + 1; c < q.nodes[n].after && i < to; c = q.nodes[c].after {
			if i >= from {
				out = append(out, c)
			}
			i++
		}
		return out
	}
	for _, index := range s.indexes {
		wanted := position(index)
		i := 0
		for c := n + 1; c < q.nodes[n].after; c = q.nodes[c].after {
			if i == wanted {
				out = append(out, c)
				break
			}
			i++
		}
	}
	return out
}

// keys replaces nodes by the names under which they stand.
func (q *query) keys(r *result) {
	r.isNames = true
	for _, i := range r.nodes {
		n := &q.nodes[i]
		switch {
		case n.named:
			r.names = append(r.names, string(unquote(nil, q.text[n.key:n.keyEnd])))
		case i != 0:
			r.names = append(r.names, strconv.Itoa(int(n.key)))
		}
	}
	r.nodes = nil
}

// apply runs a function over what was found. A single value must be a list and stands for its elements.
func (q *query) apply(function string, r *result) error {
	if r.definite && !r.isNames {
		if len(r.nodes) == 0 {
			return nil
		}
		list := r.nodes[0]
		if q.nodes[list].kind != kindList {
			return fmt.Errorf("the function %s() needs a list, found %s", function, shorten(q.raw(list)))
		}
		r.nodes = nil
		for c := list + 1; c < q.nodes[list].after; c = q.nodes[c].after {
			r.nodes = append(r.nodes, c)
		}
	}
	switch function {
	case "first":
		r.nodes, r.names = r.nodes[:min(1, len(r.nodes))], r.names[:min(1, len(r.names))]
		r.definite = true
		return nil
	case "length":
		r.scalar, r.isScalar = strconv.Itoa(len(r.nodes)+len(r.names)), true
		return nil
	}
	v, err := q.aggregate(function, r)
	r.scalar, r.isScalar = formatNumber(v), true
	return err
}

// aggregate is min, max, avg or sum of numbers and of texts that are numbers.
func (q *query) aggregate(function string, r *result) (float64, error) {
	if len(r.nodes) == 0 {
		return 0, fmt.Errorf("the function %s() has no values", function)
	}
	low, high, sum := math.Inf(1), math.Inf(-1), 0.0
	for _, n := range r.nodes {
		v, ok := 0.0, false
		if k := q.nodes[n].kind; k == kindNumber || k == kindString {
			v, ok = operand{kind: isText, text: string(q.appendText(nil, n))}.asNumber()
		}
		if !ok {
			return 0, fmt.Errorf("the function %s() needs numbers, found %s", function, shorten(q.raw(n)))
		}
		low, high, sum = min(low, v), max(high, v), sum+v
	}
	switch function {
	case "min":
		return low, nil
	case "max":
		return high, nil
	case "avg":
		sum /= float64(len(r.nodes))
	}
	if math.IsInf(sum, 0) {
		return 0, fmt.Errorf("the result of the function %s() is too large", function)
	}
	return sum, nil
}

// formatNumber writes whole numbers with all digits and others with the 15 that a float always holds, so that 8.95+12.99 is 21.94.
func formatNumber(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 15, 64)
}

func shorten(text []byte) string {
	const most = 64
	if len(text) <= most {
		return string(text)
	}
	return strings.ToValidUTF8(string(text[:most]), "") + "…"
}

// AppendQuoted appends text as a JSON string. Bytes that are no UTF-8 are kept.
func AppendQuoted(dst, text []byte) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c < ' ' || c == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

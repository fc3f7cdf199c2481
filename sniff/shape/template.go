package shape

import (
	"encoding/binary"
	"slices"

	"tidemark/wire/bson"
	"tidemark/wire/mongo"
)

// A client sends the same statement with other values, so that most commands have the same names and kinds in the same order as one before.
// A template is that order. To compare a command with it needs no hash: each name is known beforehand, and so is where the next one begins
// unless a value before it has a length of its own. Commands that a template does not fit go the way of the quick hash.

// step is one element of a template.
type step struct {
	// head are the kind and the first seven bytes of the name with its end, under mask.
	head, mask uint64
	// rest is the name from its eighth byte on, with its end.
	rest string
	// jump is the distance from the element to its value.
	jump int32
	what stepKind
	// size is the value's length where the kind tells it, else what comes on top of the length that the value begins with.
	size int32
	// value is what has to be there, for the kinds that compare.
	value string
	// truthy is what a flag has to be.
	truthy bool
}

type stepKind uint8

const (
	stepFixed  stepKind = iota // a value of known size, whatever it is
	stepLength                 // a value that begins with its length
	stepEnter                  // a document whose elements follow
	stepLeave                  // its end
	stepFlag                   // a number or truth of which only that matters
	stepEqual                  // a value that is part of the shape or of the place
)

const (
	// maxSteps and maxTemplateDepth bound a template; longer commands have none.
	maxSteps         = 64
	maxTemplateDepth = 6
	// maxEqualBytes bounds a value that is compared: a name or a direction.
	maxEqualBytes = 300
	// templateSlots is the number of places, each for two; a command stands in that of its name and collection.
	templateSlots = 1 << 9
)

// templateSlot is where templates of a command are looked for: by the sixteen bytes behind its length, which are the kind and name of the first
// element and the start of its value.
func (f *Finder) templateSlot(body []byte) *[2]*known {
	h := fold(fold(f.seed, binary.LittleEndian.Uint64(body[4:])), binary.LittleEndian.Uint64(body[12:]))
	return &f.templates[h%templateSlots]
}

// byTemplate finds a command whose template fits.
func (f *Finder) byTemplate(m *mongo.Message, c *Command) bool {
	body := m.Body
	if len(body) < 24 || int(binary.LittleEndian.Uint32(body)) != len(body) {
		return false
	}
	slot := f.templateSlot(body)
	for i, k := range slot {
		if k == nil || !fits(k.template, body) {
			continue
		}
		if i == 1 {
			slot[0], slot[1] = k, slot[0]
		}
		statements := c.Statements[:0]
		*c = k.command
		c.Statements = append(statements, Statement{Shape: k.shape, Count: 1})
		return true
	}
	return false
}

// prefer puts a command that was found by its hash where its template is looked for first, and makes that once it was found often.
func (f *Finder) prefer(k *known, body []byte, l *layout) {
	if k.hits < templateHits {
		if k.hits++; k.hits == templateHits && f.templated < maxTemplates {
			k.template = newTemplate(body, l)
			f.templated++
		}
	}
	if k.template == nil || len(body) < 24 {
		return
	}
	if slot := f.templateSlot(body); slot[0] != k {
		slot[0], slot[1] = k, slot[0]
	}
}

// fits reports whether a document, whose length was checked, is as a template says.
func fits(template []step, doc []byte) bool {
	var ends [maxTemplateDepth]int
	depth, at := 0, 4
	for i := range template {
		s := &template[i]
		if s.what == stepLeave {
			depth--
			if at >= len(doc) || doc[at] != 0 || at+1 != ends[depth] {
				return false
			}
			at++
			continue
		}
		if at+8 > len(doc) || binary.LittleEndian.Uint64(doc[at:])&s.mask != s.head {
			return false
		}
		v := at + int(s.jump)
		if s.rest != "" && (v > len(doc) || string(doc[at+8:v]) != s.rest) {
			return false
		}
		next := v + int(s.size)
		switch s.what {
		case stepLength, stepEnter:
			if v+4 > len(doc) {
				return false
			}
			n := int(binary.LittleEndian.Uint32(doc[v:]))
			if next += n; next > len(doc) || n+int(s.size) < 5 {
				return false
			}
			if s.what == stepEnter {
				ends[depth] = next
				depth++
				next = v + 4
			}
		case stepFlag:
			if next > len(doc) || anySet(doc[v:next]) != s.truthy {
				return false
			}
		case stepEqual:
			if next > len(doc) || string(doc[v:next]) != s.value {
				return false
			}
		}
		at = next
	}
	return at == len(doc)-1 && doc[at] == 0
}

func anySet(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return true
		}
	}
	return false
}

// newTemplate makes the template of a command, or nil when it has something that only the longer ways can tell: lists in what is read, names that may be
// data, values of which only the server knows whether they matter. It keeps no value that the shape does not keep.
func newTemplate(body []byte, l *layout) []step {
	t := templateMaker{layout: l}
	if l == nil || l.statements != "" || !t.document(body, 0, maskAll) {
		return nil
	}
	return slices.Clone(t.steps[:len(t.steps)-1]) // The end of the whole is compared apart.
}

type templateMaker struct {
	layout *layout
	steps  []step
}

// document adds the elements of a document and its end. Depth 0 is the command itself.
func (t *templateMaker) document(doc []byte, depth int, in mode) bool {
	r, err := bson.NewReader(doc)
	if err != nil || depth > maxTemplateDepth {
		return false
	}
	var e bson.Element
	for first := depth == 0; ; first = false {
		ok, err := r.Next(&e)
		switch {
		case err != nil || len(t.steps) >= maxSteps:
			return false
		case !ok:
			t.steps = append(t.steps, step{what: stepLeave})
			return true
		case first:
			ok = e.Kind == bson.String && t.add(&e, stepEqual)
		case depth == 0:
			ok = t.field(&e)
		default:
			ok = t.element(&e, depth, in)
		}
		if !ok {
			return false
		}
	}
}

// field adds a field of the command.
func (t *templateMaker) field(e *bson.Element) bool {
	if string(e.Key) == "$db" {
		return e.Kind == bson.String && t.add(e, stepEqual)
	}
	if slices.Contains(markFields, string(e.Key)) {
		return false
	}
	i := t.layout.part(e.Key)
	if i < 0 {
		return t.add(e, stepLength)
	}
	p := &t.layout.parts[i]
	switch {
	case p.present:
		return (e.Kind == bson.Int32 || e.Kind == bson.Int64 || e.Kind == bson.Boolean) && t.add(e, stepFlag)
	case e.Kind != bson.Document || p.mode == keepName:
		return false
	case p.mode == inUpdate:
		return t.enter(e, 1, maskAll)
	}
	return t.enter(e, 1, p.mode)
}

// element adds an element of what belongs to the shape.
func (t *templateMaker) element(e *bson.Element, depth int, in mode) bool {
	child := in
	if in != maskAll || len(e.Key) > 0 && e.Key[0] == '$' {
		child = childMode(in, e.Key)
	}
	switch {
	case e.Kind == bson.Array:
		return false
	case e.Kind == bson.Document:
		return t.enter(e, depth+1, child)
	case child == maskAll:
		return t.add(e, stepLength)
	case child == keepDirections:
		_, ok := direction(e)
		return ok && t.add(e, stepEqual)
	case child == keepPaths && e.Kind != bson.String:
		return t.add(e, stepLength)
	}
	return false
}

// enter adds a document and what is in it.
func (t *templateMaker) enter(e *bson.Element, depth int, in mode) bool {
	return t.add(e, stepEnter) && t.document(e.Value, depth, in)
}

// add adds one element; stepLength stands for a value that is passed over, however it tells its length.
func (t *templateMaker) add(e *bson.Element, what stepKind) bool {
	if mayBeData(e.Key) || what == stepEqual && len(e.Value) > maxEqualBytes {
		return false
	}
	s := step{what: what, jump: int32(len(e.Key) + 2)}
	switch fixed, extra := sizes[e.Kind], extras[e.Kind]; {
	case what == stepEqual || what == stepFlag:
		s.size = int32(len(e.Value))
	case fixed >= 0:
		s.what, s.size = stepFixed, int32(fixed)
	case extra >= 0:
		s.size = int32(extra)
	default:
		return false
	}
	switch what {
	case stepEqual:
		s.value = string(e.Value)
	case stepFlag:
		s.truthy = anySet(e.Value)
	}
	head := append([]byte{byte(e.Kind)}, e.Key...)
	head = append(head, 0)
	if len(head) > 8 {
		s.rest = string(head[8:])
	}
	for i, c := range head[:min(len(head), 8)] {
		s.head |= uint64(c) << (8 * i)
		s.mask |= uint64(0xff) << (8 * i)
	}
	t.steps = append(t.steps, s)
	return true
}

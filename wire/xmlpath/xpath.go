package xmlpath

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"

	"github.com/antchfx/xpath"
)

// maxMoves bounds how often one evaluation may move through a document.
const maxMoves = 20_000_000

// ErrTooMuch is returned when an expression looks at too many nodes.
var ErrTooMuch = errors.New("the XPath looks at too many nodes of the document")

// Path is a compiled expression. It may be used by several goroutines; they wait for each other.
type Path struct {
	source string
	mu     sync.Mutex
	expr   *xpath.Expr
}

// MaxPathBytes is the longest expression.
const MaxPathBytes = 16 << 10

// Compile reads an expression. The error names it.
func Compile(source string) (p *Path, err error) {
	if len(source) > MaxPathBytes {
		return nil, fmt.Errorf("the XPath has %d bytes, the limit is %d", len(source), MaxPathBytes)
	}
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("XPath %q: %v", source, r)
		}
	}()
	expr, err := xpath.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("XPath %q: %w", source, err)
	}
	return &Path{source: source, expr: expr}, nil
}

// Query evaluates an expression: a set of nodes gives their XML, an attribute among them with its name, the empty set the empty
// text; numbers, texts and booleans (0 and 1) give themselves.
//
// Source: libxml2's xmlXPathEval and xmlNodeDump, which Zabbix's XML XPath step hands on.
func (d *Document) Query(p *Path) (text []byte, err error) { return d.query(p, maxMoves) }

func (d *Document) query(p *Path, limit int) (text []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() {
		if r := recover(); r != nil {
			if r == any(ErrTooMuch) {
				err = ErrTooMuch
				return
			}
			err = fmt.Errorf("XPath %q cannot be evaluated: %v", p.source, r)
		}
	}()
	moves := maxMoves - limit
	switch v := p.expr.Evaluate(&cursor{root: d.root, at: d.root, attribute: -1, moves: &moves}).(type) {
	case string:
		return []byte(v), nil
	case bool:
		if v {
			return []byte("1"), nil
		}
		return []byte("0"), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("XPath %q gives no number", p.source)
		}
		return strconv.AppendFloat(nil, v, 'f', -1, 64), nil
	case *xpath.NodeIterator:
		for v.MoveNext() {
			c, ok := v.Current().(*cursor)
			if !ok {
				continue
			}
			if c.attribute >= 0 {
				text = c.at.attributes[c.attribute].appendXML(text)
			} else {
				text = c.at.appendXML(text)
			}
			if len(text) > MaxBytes {
				return nil, fmt.Errorf("XPath %q gives more than %d bytes", p.source, MaxBytes)
			}
		}
		return text, nil
	}
	return nil, fmt.Errorf("XPath %q gives nothing that is a value", p.source)
}

// cursor is a place in a document.
type cursor struct {
	root, at *node
	// attribute is the index of the attribute that the cursor stands on, or -1.
	attribute int
	moves     *int
}

func (c *cursor) count() {
	if *c.moves++; *c.moves > maxMoves {
		panic(ErrTooMuch)
	}
}

// NodeType implements xpath.NodeNavigator, as all methods below do.
func (c *cursor) NodeType() xpath.NodeType {
	switch {
	case c.attribute >= 0:
		return xpath.AttributeNode
	case c.at.kind == elementNode:
		return xpath.ElementNode
	case c.at.kind == textNode:
		return xpath.TextNode
	case c.at.kind == commentNode:
		return xpath.CommentNode
	}
	return xpath.RootNode
}

func (c *cursor) LocalName() string {
	if c.attribute >= 0 {
		return c.at.attributes[c.attribute].name
	}
	return c.at.name
}

func (c *cursor) Prefix() string {
	if c.attribute >= 0 {
		return c.at.attributes[c.attribute].prefix
	}
	return c.at.prefix
}

func (c *cursor) Value() string {
	c.count()
	switch {
	case c.attribute >= 0:
		return c.at.attributes[c.attribute].value
	case c.at.kind == textNode || c.at.kind == commentNode:
		return c.at.text
	}
	inner := c.at.appendInner(nil)
	*c.moves += len(inner) / 64
	return string(inner)
}

// String returns the value, which makes a cursor print well.
func (c *cursor) String() string { return c.Value() }

func (c *cursor) Copy() xpath.NodeNavigator {
	d := *c
	return &d
}

func (c *cursor) MoveToRoot() { c.at, c.attribute = c.root, -1 }

func (c *cursor) MoveToParent() bool {
	c.count()
	if c.attribute >= 0 {
		c.attribute = -1
		return true
	}
	return c.move(c.at.parent)
}

func (c *cursor) MoveToNextAttribute() bool {
	if c.attribute >= len(c.at.attributes)-1 {
		return false
	}
	c.attribute++
	return true
}

func (c *cursor) MoveToChild() bool {
	return c.attribute < 0 && c.move(c.at.first)
}

func (c *cursor) MoveToFirst() bool {
	if c.attribute >= 0 || c.at.parent == nil {
		return false
	}
	return c.move(c.at.parent.first)
}

func (c *cursor) MoveToNext() bool {
	return c.attribute < 0 && c.move(c.at.next)
}

func (c *cursor) MoveToPrevious() bool {
	return c.attribute < 0 && c.move(c.at.previous)
}

func (c *cursor) move(to *node) bool {
	c.count()
	if to == nil {
		return false
	}
	c.at = to
	return true
}

func (c *cursor) MoveTo(other xpath.NodeNavigator) bool {
	o, ok := other.(*cursor)
	if !ok || o.root != c.root {
		return false
	}
	c.at, c.attribute = o.at, o.attribute
	return true
}

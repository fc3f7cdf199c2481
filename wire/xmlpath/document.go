// Package xmlpath reads XML documents, answers XPath 1.0 expressions over them, and turns them into JSON as Zabbix does.
//
// A document has no entities but the five of XML and character references, and no external parts: nothing outside of the text
// is ever read.
package xmlpath

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/html/charset"
)

// Limits of a document.
const (
	// MaxBytes is the longest text.
	MaxBytes = 16 << 20
	// maxDepth is how deep elements may nest.
	maxDepth = 256
)

type nodeKind uint8

const (
	rootNode nodeKind = iota
	elementNode
	textNode
	commentNode
)

// node is a part of a document.
type node struct {
	kind nodeKind
	// prefix and name are an element's.
	prefix, name string
	// text is that of a text or comment.
	text       string
	attributes []attribute
	parent     *node
	first      *node
	last       *node
	previous   *node
	next       *node
}

type attribute struct{ prefix, name, value string }

// label is a name with its prefix.
func label(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + ":" + name
}

// Document is a parsed text. It may be used by several goroutines.
type Document struct{ root *node }

// Parse reads a text. The error names the line and what is wrong.
func Parse(text []byte) (*Document, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the XML has %d bytes, the limit is %d", len(text), MaxBytes)
	}
	d := xml.NewDecoder(bytes.NewReader(text))
	d.CharsetReader = charset.NewReaderLabel
	root := &node{}
	at, depth := root, 0
	for {
		// RawToken keeps the prefixes of names; that start and end agree is checked here.
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("invalid XML: %w", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth > maxDepth {
				return nil, invalid(d, "expected at most %d levels", maxDepth)
			}
			if at == root && root.element() != nil {
				return nil, invalid(d, "expected one element at the top, found another: <%s>", label(t.Name.Space, t.Name.Local))
			}
			at = at.add(newElement(t))
		case xml.EndElement:
			if at == root || at.prefix != t.Name.Space || at.name != t.Name.Local {
				return nil, invalid(d, "expected the end of <%s>, found </%s>", label(at.prefix, at.name), label(t.Name.Space, t.Name.Local))
			}
			depth--
			at = at.parent
		case xml.CharData:
			if at == root && len(bytes.TrimSpace(t)) > 0 {
				return nil, invalid(d, "expected an element, found text")
			}
			if at != root {
				at.addText(string(t))
			}
		case xml.Comment:
			at.add(&node{kind: commentNode, text: string(t)})
		}
	}
	if at != root {
		return nil, invalid(d, "expected the end of <%s>, found the end", label(at.prefix, at.name))
	}
	if root.element() == nil {
		return nil, invalid(d, "expected an element, found the end")
	}
	return &Document{root}, nil
}

func invalid(d *xml.Decoder, format string, args ...any) error {
	line, _ := d.InputPos()
	return fmt.Errorf("invalid XML: line %d: "+format, append([]any{line}, args...)...)
}

func newElement(t xml.StartElement) *node {
	n := &node{kind: elementNode, prefix: t.Name.Space, name: t.Name.Local}
	for _, a := range t.Attr {
		n.attributes = append(n.attributes, attribute{a.Name.Space, a.Name.Local, a.Value})
	}
	return n
}

// element returns the first element among the children.
func (n *node) element() *node {
	for c := n.first; c != nil; c = c.next {
		if c.kind == elementNode {
			return c
		}
	}
	return nil
}

func (n *node) add(c *node) *node {
	c.parent, c.previous = n, n.last
	if n.last == nil {
		n.first = c
	} else {
		n.last.next = c
	}
	n.last = c
	return c
}

// addText adds text, joined with text right before it.
func (n *node) addText(text string) {
	if n.last != nil && n.last.kind == textNode {
		n.last.text += text
		return
	}
	n.add(&node{kind: textNode, text: text})
}

// appendInner appends the text of a node and of all that is in it.
func (n *node) appendInner(dst []byte) []byte {
	if n.kind == textNode {
		return append(dst, n.text...)
	}
	for c := n.first; c != nil; c = c.next {
		if c.kind != commentNode {
			dst = c.appendInner(dst)
		}
	}
	return dst
}

var (
	textEscapes      = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#13;")
	attributeEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\n", "&#10;", "\r", "&#13;", "\t", "&#9;")
)

// appendXML appends a node as XML.
func (n *node) appendXML(dst []byte) []byte {
	switch n.kind {
	case textNode:
		return append(dst, textEscapes.Replace(n.text)...)
	case commentNode:
		return append(append(append(dst, "<!--"...), n.text...), "-->"...)
	case rootNode:
		for c := n.first; c != nil; c = c.next {
			dst = c.appendXML(dst)
		}
		return dst
	}
	name := label(n.prefix, n.name)
	dst = append(append(dst, '<'), name...)
	for i := range n.attributes {
		dst = n.attributes[i].appendXML(dst)
	}
	if n.first == nil {
		return append(dst, "/>"...)
	}
	dst = append(dst, '>')
	for c := n.first; c != nil; c = c.next {
		dst = c.appendXML(dst)
	}
	dst = append(append(dst, "</"...), name...)
	return append(dst, '>')
}

func (a *attribute) appendXML(dst []byte) []byte {
	dst = append(append(dst, ' '), label(a.prefix, a.name)...)
	dst = append(append(dst, `="`...), attributeEscapes.Replace(a.value)...)
	return append(dst, '"')
}

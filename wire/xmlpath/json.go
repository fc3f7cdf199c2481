package xmlpath

import (
	"strings"

	"tidemark/wire/jsonpath"
)

// JSON returns the document as JSON: attributes become members with @ before their name, elements of the same name a list, an
// element with text only its text, other text the member #text, and an element without anything null.
//
// Source: Zabbix documentation, "XML to JSON", "Custom serialization rules".
func (d *Document) JSON() []byte {
	top := d.root.element()
	dst := jsonpath.AppendQuoted([]byte{'{'}, []byte(label(top.prefix, top.name)))
	dst = append(dst, ':')
	dst = top.appendJSON(dst)
	return append(dst, '}')
}

// content returns the text directly in an element, without what is only there to indent others.
func (n *node) content() string {
	var parts []string
	for c := n.first; c != nil; c = c.next {
		if c.kind == textNode && strings.TrimSpace(c.text) != "" {
			parts = append(parts, c.text)
		}
	}
	return strings.Join(parts, "")
}

func (n *node) appendJSON(dst []byte) []byte {
	text := n.content()
	if len(n.attributes) == 0 && n.element() == nil {
		if text == "" {
			return append(dst, "null"...)
		}
		return jsonpath.AppendQuoted(dst, []byte(text))
	}
	dst = append(dst, '{')
	start := len(dst)
	member := func(name string) {
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = append(jsonpath.AppendQuoted(dst, []byte(name)), ':')
	}
	for _, a := range n.attributes {
		member("@" + label(a.prefix, a.name))
		dst = jsonpath.AppendQuoted(dst, []byte(a.value))
	}
	if text != "" {
		member("#text")
		dst = jsonpath.AppendQuoted(dst, []byte(text))
	}
	// Elements of one name stand together, where the first of them is.
	var names []string
	same := map[string][]*node{}
	for c := n.first; c != nil; c = c.next {
		if c.kind != elementNode {
			continue
		}
		name := label(c.prefix, c.name)
		if same[name] == nil {
			names = append(names, name)
		}
		same[name] = append(same[name], c)
	}
	for _, name := range names {
		member(name)
		list := same[name]
		if len(list) == 1 {
			dst = list[0].appendJSON(dst)
			continue
		}
		for i, c := range list {
			dst = append(dst, "[,"[min(i, 1)])
			dst = c.appendJSON(dst)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

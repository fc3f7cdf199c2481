package confdb

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// out is an object that is being written: keys in their order.
type out struct{ node }

func newOut() *out { return &out{node{kind: objectNode}} }

func scalarOf(text string) *node { return &node{kind: scalarNode, text: text} }

// put adds a field.
func (o *out) put(key string, n *node) { o.keys, o.kids = append(o.keys, key), append(o.kids, n) }

// text adds a text, unless it is the one that a missing field stands for.
func (o *out) text(key, text, missing string) {
	if text != missing {
		o.put(key, scalarOf(text))
	}
}

// list adds a list that is not empty.
func (o *out) list(key string, kids []*node) {
	if len(kids) > 0 {
		o.put(key, &node{kind: listNode, kids: kids})
	}
}

// any adds what encoding/json gave, the keys of objects in alphabetical order.
func (o *out) any(key string, v any) {
	if n := nodeOf(v); n != nil {
		o.put(key, n)
	}
}

func nodeOf(v any) *node {
	switch v := v.(type) {
	case string:
		return scalarOf(v)
	case []any:
		if len(v) == 0 {
			return nil
		}
		n := &node{kind: listNode}
		for _, kid := range v {
			if k := nodeOf(kid); k != nil {
				n.kids = append(n.kids, k)
			}
		}
		return n
	case map[string]any:
		o := newOut()
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			o.any(k, v[k])
		}
		return &o.node
	}
	return nil
}

// emitYAML writes a tree as Zabbix lays its exports out: two spaces a level, lists indented under their key.
func emitYAML(root *node) []byte {
	var b bytes.Buffer
	emitObject(&b, root, 0, false)
	return b.Bytes()
}

func indent(b *bytes.Buffer, level int) {
	for range level {
		b.WriteString("  ")
	}
}

// emitObject writes the fields of an object; inline says that the first stands behind a dash.
func emitObject(b *bytes.Buffer, n *node, level int, inline bool) {
	for i, key := range n.keys {
		if i > 0 || !inline {
			indent(b, level)
		}
		b.WriteString(quoteYAML(key))
		b.WriteByte(':')
		emitValue(b, n.kids[i], level)
	}
}

// emitValue writes what comes behind a key or a dash of the given level.
func emitValue(b *bytes.Buffer, n *node, level int) {
	switch {
	case n.kind == scalarNode:
		b.WriteByte(' ')
		emitScalar(b, n.text, level+1)
	case len(n.kids) == 0 && n.kind == objectNode:
		b.WriteString(" {}\n")
	case len(n.kids) == 0:
		b.WriteString(" []\n")
	case n.kind == objectNode:
		b.WriteByte('\n')
		emitObject(b, n, level+1, false)
	default:
		b.WriteByte('\n')
		for _, kid := range n.kids {
			indent(b, level+1)
			b.WriteByte('-')
			if kid.kind == objectNode && len(kid.kids) > 0 {
				b.WriteByte(' ')
				emitObject(b, kid, level+2, true)
				continue
			}
			emitValue(b, kid, level+1)
		}
	}
}

func emitScalar(b *bytes.Buffer, text string, level int) {
	if !isBlock(text) {
		b.WriteString(quoteYAML(text))
		b.WriteByte('\n')
		return
	}
	b.WriteByte('|')
	body := strings.TrimRight(text, "\n")
	switch ends := len(text) - len(body); {
	case ends == 0:
		b.WriteByte('-')
	case ends > 1:
		b.WriteByte('+')
	}
	b.WriteByte('\n')
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if line != "" {
			indent(b, level)
			b.WriteString(line)
		}
		b.WriteByte('\n')
	}
}

// isBlock reports whether a text is written as a literal block: several lines without what would change on the way.
func isBlock(text string) bool {
	if !strings.Contains(text, "\n") || strings.Trim(text, "\n") == "" || hasSpecial(text) {
		return false
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && strings.TrimLeft(line, " \t") == "" {
			return false
		}
	}
	first := strings.TrimLeft(text, "\n")
	return first[0] != ' ' && first[0] != '\t'
}

// hasSpecial reports characters that only the double-quoted form keeps.
func hasSpecial(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff
	})
}

var (
	plainYAML = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./()-]*( [A-Za-z0-9_./()-]+)*$`)
	// otherYAML are texts that a reader may take for something else.
	otherYAML = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null)$`)
)

// quoteYAML writes a text on one line.
func quoteYAML(text string) string {
	switch {
	case strings.Contains(text, "\n") || hasSpecial(text):
		var b bytes.Buffer
		e := json.NewEncoder(&b) // a JSON string is a double-quoted YAML scalar
		e.SetEscapeHTML(false)
		if err := e.Encode(text); err != nil {
			panic("confdb: quote: " + err.Error()) // a text can be encoded
		}
		return escapeMore(strings.TrimSuffix(b.String(), "\n"))
	case plainYAML.MatchString(text) && !otherYAML.MatchString(text):
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

// escapeMore escapes what JSON leaves as it is and YAML does not.
func escapeMore(text string) string {
	if !hasSpecial(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hasSpecial(string(r)) {
			const digits = "0123456789abcdef"
			b.WriteString(`\u`)
			for shift := 12; shift >= 0; shift -= 4 {
				b.WriteByte(digits[r>>shift&15])
			}
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

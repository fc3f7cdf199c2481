package confdb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"tidemark/internal/yamlload"
)

// Limits of one imported file. They bound memory before the file is understood.
const (
	// MaxImportBytes is the size of a file.
	MaxImportBytes = 64 << 20
	// maxNodes is the number of values in a file.
	maxNodes = 4 << 20
	// maxDepth is how deep values may be nested; exports use about ten levels.
	maxDepth = 64
	// maxMarks bounds what the YAML parser may have to allocate: each of its nodes needs one of these characters.
	maxMarks = 8 << 20
)

// node is a value of an export, the same for YAML and JSON, with the line where it stands.
type node struct {
	kind nodeKind
	line int
	text string
	keys []string
	kids []*node
	used []bool
}

type nodeKind uint8

const (
	nullNode nodeKind = iota
	scalarNode
	listNode
	objectNode
)

func (k nodeKind) String() string {
	return [...]string{"nothing", "a text or number", "a list", "an object"}[k]
}

// field returns the value of a key, or nil, and remembers that it was asked for.
func (n *node) field(key string) *node {
	if n == nil || n.kind != objectNode {
		return nil
	}
	for i, k := range n.keys {
		if k == key {
			n.used[i] = true
			if n.kids[i].kind == nullNode {
				return nil
			}
			return n.kids[i]
		}
	}
	return nil
}

// parseTree reads a YAML or JSON document. JSON is YAML too, but its own parser is several times faster.
func parseTree(src []byte) (*node, error) {
	if len(src) > MaxImportBytes {
		return nil, fmt.Errorf("the file has %d bytes; at most %d are taken", len(src), MaxImportBytes)
	}
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	start := bytes.TrimLeft(src, " \t\r\n")
	switch {
	case len(start) == 0:
		return nil, errors.New("the file is empty; expected a Zabbix export in YAML or JSON")
	case start[0] == '{':
		return parseJSON(src)
	case start[0] == '<':
		return nil, errors.New("the file is XML; expected a Zabbix export in YAML or JSON")
	}
	return parseYAML(src)
}

type jsonTree struct {
	dec   *json.Decoder
	src   []byte
	at    int64
	line  int
	nodes int
}

func parseJSON(src []byte) (*node, error) {
	p := &jsonTree{dec: json.NewDecoder(bytes.NewReader(src)), src: src, line: 1}
	p.dec.UseNumber()
	n, err := p.value(0)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", p.where(), err)
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("line %d: more after the end of the document", p.where())
	}
	return n, nil
}

// where returns the line that the decoder has reached.
func (p *jsonTree) where() int {
	if to := p.dec.InputOffset(); to > p.at {
		p.line += bytes.Count(p.src[p.at:to], []byte{'\n'})
		p.at = to
	}
	return p.line
}

func (p *jsonTree) value(depth int) (*node, error) {
	token, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	if p.nodes++; p.nodes > maxNodes {
		return nil, fmt.Errorf("more than %d values", maxNodes)
	}
	n := &node{line: p.where()}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			n.kind = objectNode
			return n, p.object(n, depth)
		}
		n.kind = listNode
		return n, p.list(n, depth)
	case string:
		n.kind, n.text = scalarNode, t
	case json.Number:
		n.kind, n.text = scalarNode, string(t)
	case bool:
		n.kind, n.text = scalarNode, fmt.Sprint(t)
	}
	return n, nil
}

func (p *jsonTree) object(n *node, depth int) error {
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return err
		}
		kid, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.keys = append(n.keys, token.(string))
		n.kids = append(n.kids, kid)
	}
	n.used = make([]bool, len(n.keys))
	_, err := p.dec.Token()
	return err
}

func (p *jsonTree) list(n *node, depth int) error {
	for p.dec.More() {
		kid, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.kids = append(n.kids, kid)
	}
	_, err := p.dec.Token()
	return err
}

func parseYAML(src []byte) (*node, error) {
	marks := 0
	for _, b := range src {
		switch b {
		case '\n', ',', ':', '[', '{':
			marks++
		}
	}
	if marks > maxMarks {
		return nil, fmt.Errorf("more than %d lines and values; split the file", maxMarks)
	}
	var doc yaml.Node
	if err := yamlload.Load(src, &doc); err != nil {
		return nil, errors.New("no YAML or JSON: " + yamlMistake(err.Error()))
	}
	root := &doc
	if root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
		root = root.Content[0]
	}
	t := yamlTree{}
	return t.value(root, 0)
}

// yamlPlace is how the parser says where it stopped: at L3.C1, or at L3.C1-L4.C2.
var yamlPlace = regexp.MustCompile(` at L\d+\.C\d+(?:-L\d+\.C\d+)?`)

// yamlMistake makes the parser's error one that begins with the line where it stopped.
func yamlMistake(text string) string {
	text = strings.TrimPrefix(strings.TrimPrefix(text, "yaml: "), "go-yaml load ")
	place := yamlPlace.FindString(text)
	if place == "" {
		return text
	}
	_, line, _ := strings.Cut(place[strings.LastIndexByte(place, 'L'):], "L")
	line, _, _ = strings.Cut(line, ".")
	return "line " + line + ": " + strings.Replace(text, place, "", 1)
}

// yamlTree counts the values it made, and those of them that aliases stand for while it is within one.
type yamlTree struct{ nodes, aliased, within int }

func (t *yamlTree) value(y *yaml.Node, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("line %d: nested deeper than %d levels", y.Line, maxDepth)
	}
	if t.nodes++; t.nodes > maxNodes {
		return nil, fmt.Errorf("line %d: more than %d values", y.Line, maxNodes)
	}
	if t.within > 0 {
		if t.aliased++; t.aliased > yamlload.MaxAliased {
			return nil, fmt.Errorf("line %d: aliases counted as often as they are used stand for more than %d values; write them out", y.Line, yamlload.MaxAliased)
		}
	}
	n := &node{line: y.Line}
	switch y.Kind {
	case yaml.AliasNode:
		t.within++
		defer func() { t.within-- }()
		return t.value(y.Alias, depth+1)
	case yaml.ScalarNode:
		if y.Tag != "!!null" {
			n.kind, n.text = scalarNode, y.Value
		}
	case yaml.SequenceNode:
		n.kind = listNode
		for _, c := range y.Content {
			kid, err := t.value(c, depth+1)
			if err != nil {
				return nil, err
			}
			n.kids = append(n.kids, kid)
		}
	case yaml.MappingNode:
		return n, t.object(n, y, depth)
	}
	return n, nil
}

func (t *yamlTree) object(n *node, y *yaml.Node, depth int) error {
	n.kind = objectNode
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := y.Content[i]
		if key.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: a key must be a plain name", key.Line)
		}
		kid, err := t.value(y.Content[i+1], depth+1)
		if err != nil {
			return err
		}
		n.keys = append(n.keys, key.Value)
		n.kids = append(n.kids, kid)
	}
	n.used = make([]bool, len(n.keys))
	return nil
}

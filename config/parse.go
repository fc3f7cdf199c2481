package config

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"tidemark/internal/yamlload"
)

// Parse reads the text of a file over the defaults; name is what messages call it. Environment variables written as
// ${NAME} are replaced in values; $${ stands for a literal ${. The error is Mistakes with everything that is wrong.
func Parse(name string, src []byte) (*Config, error) {
	p := &parser{config: Default()}
	if len(src) > MaxFileBytes {
		p.wrong(position{}, "", "the file has more than %d bytes", MaxFileBytes)
	} else {
		p.document(src)
	}
	if err := p.config.Validate(); err != nil {
		var list Mistakes
		errors.As(err, &list)
		for _, m := range list {
			// A setting that is wrong in the file has been reported; what remains is its default.
			if !slices.ContainsFunc(p.mistakes, func(o Mistake) bool { return o.Key == m.Key }) {
				p.mistakes = append(p.mistakes, m)
			}
		}
	}
	if len(p.mistakes) == 0 {
		return p.config, nil
	}
	for i := range p.mistakes {
		p.mistakes[i].File = name
	}
	p.mistakes.sort()
	return nil, p.mistakes
}

type parser struct {
	config   *Config
	mistakes Mistakes
}

func (p *parser) wrong(at position, key, format string, args ...any) {
	p.mistakes = append(p.mistakes, Mistake{Line: at.line, Column: at.column, Key: key, Text: fmt.Sprintf(format, args...)})
}

func at(n *yaml.Node) position { return position{n.Line, n.Column} }

// errorPlace finds the place in a message of the YAML parser: what it was doing, where that began and where it failed.
var errorPlace = regexp.MustCompile(`(?s)\((while [^)]*)\) at L(\d+)\.C(\d+)(?:-L(\d+)\.C(\d+))?: (.*)`)

// syntax turns a message of the YAML parser into ours.
func syntax(err error) (position, string) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if strings.Contains(text, "multiple") {
		return position{1, 1}, "found several YAML documents; expected one"
	}
	m := errorPlace.FindStringSubmatch(text)
	if m == nil {
		return position{1, 1}, "no YAML: " + text
	}
	line, column := m[4], m[5]
	if line == "" {
		line, column = m[2], m[3]
	}
	var place position
	place.line, _ = strconv.Atoi(line)
	place.column, _ = strconv.Atoi(column)
	return place, "no YAML: " + m[6] + " (" + m[1] + " that begins at line " + m[2] + ")"
}

func (p *parser) document(src []byte) {
	var doc yaml.Node
	if err := yamlload.Load(src, &doc); err != nil {
		if strings.Contains(err.Error(), "no documents") {
			return // an empty file has the defaults
		}
		place, text := syntax(err)
		p.wrong(place, "", "%s", text)
		return
	}
	root := &doc
	if root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
		root = root.Content[0]
	}
	if root.Kind == 0 || root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return
	}
	p.section("", root)
}

// section reads the keys under a prefix, "" or "http.".
func (p *parser) section(prefix string, n *yaml.Node) {
	what := "settings"
	if prefix != "" {
		what = "the settings of " + strings.TrimSuffix(prefix, ".")
	}
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return
	case n.Kind != yaml.MappingNode:
		p.wrong(at(n), strings.TrimSuffix(prefix, "."), "found %s; expected %s as key: value", kindName(n), what)
		return
	}
	seen := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			p.wrong(at(key), "", "found %s as a key; expected a name", kindName(key))
			continue
		}
		full := prefix + key.Value
		if line := seen[key.Value]; line != 0 {
			p.wrong(at(key), full, "set before at line %d; expected once", line)
			continue
		}
		seen[key.Value] = key.Line
		p.key(prefix, full, key, value)
	}
}

func (p *parser) key(prefix, full string, key, value *yaml.Node) {
	if full == "scrape" {
		p.scrape(value)
		return
	}
	for i := range fields {
		f := &fields[i]
		if f.key == full {
			p.value(f, value)
			return
		}
		if strings.HasPrefix(f.key, full+".") {
			p.section(full+".", value)
			return
		}
	}
	p.wrong(at(key), full, "no such setting; %s", suggest(prefix, key.Value))
}

// suggest says what may have been meant with an unknown key.
func suggest(prefix, name string) string {
	var names, elsewhere []string
	if prefix == "" {
		names = append(names, "scrape") // a section of its own, without fields
	}
	for _, f := range fields {
		if rest, ok := strings.CutPrefix(f.key, prefix); ok {
			rest, _, _ = strings.Cut(rest, ".")
			if !slices.Contains(names, rest) {
				names = append(names, rest)
			}
		}
		if strings.HasSuffix(f.key, "."+name) {
			elsewhere = append(elsewhere, f.key)
		}
	}
	if near := nearest(strings.ToLower(strings.ReplaceAll(name, "-", "_")), names); near != "" {
		return "did you mean " + prefix + near + "?"
	}
	if len(elsewhere) > 0 {
		return "did you mean " + strings.Join(elsewhere, " or ") + "?"
	}
	slices.Sort(names)
	return "expected one of " + strings.Join(names, ", ")
}

// value reads one setting.
func (p *parser) value(f *field, n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		p.wrong(at(n), f.key, "found %s; expected a value", kindName(n))
		return
	}
	text, err := expand(n.Value)
	if err != nil {
		p.wrong(at(n), f.key, "%v", err)
		return
	}
	v, err := f.parse(text)
	if err != nil {
		p.wrong(at(n), f.key, "%v", err)
		return
	}
	f.set(p.config, v)
	p.config.set[f.key] = at(n)
}

func kindName(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a section"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.Tag == "!!null":
		return "nothing"
	}
	return fmt.Sprintf("%.60q", n.Value)
}

// expand replaces ${NAME} by the environment variable.
func expand(text string) (string, error) {
	var b strings.Builder
	for {
		start := strings.Index(text, "${")
		if start < 0 {
			b.WriteString(text)
			return b.String(), nil
		}
		if start > 0 && text[start-1] == '$' {
			b.WriteString(text[:start-1] + "${")
			text = text[start+2:]
			continue
		}
		end := strings.IndexByte(text[start:], '}')
		if end < 0 {
			return "", errors.New("found ${ without }; expected ${NAME}, or $${ for a literal ${")
		}
		name := text[start+2 : start+end]
		value, ok := os.LookupEnv(name)
		if !ok || name == "" {
			return "", fmt.Errorf("the environment variable %q is not set", name)
		}
		b.WriteString(text[:start] + value)
		text = text[start+end+1:]
	}
}

package confdb

import (
	"fmt"
	"slices"
	"strings"

	"tidemark/internal/macrofunc"
)

// itemRef is where an expression names an item: text[hostAt:hostEnd] is the host, text[keyAt:keyEnd] the key with its
// parameters.
type itemRef struct{ hostAt, hostEnd, keyAt, keyEnd int }

// itemRefs finds the items that an expression in the syntax of Zabbix 5.4 and later names: func(/host/key[…],…). It
// knows strings and brackets, and leaves all else to the expression compiler.
func itemRefs(text string) ([]itemRef, error) {
	var refs []itemRef
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			end := stringEnd(text, i)
			if end < 0 {
				return nil, fmt.Errorf("the string at character %d does not end", i+1)
			}
			i = end - 1
		case '{':
			if end := macroEnd(text, i); end > 0 {
				i = end - 1
			}
		case '(':
			depth++
			at := i + 1 + len(text[i+1:]) - len(strings.TrimLeft(text[i+1:], " \t\r\n"))
			if at >= len(text) || text[at] != '/' || i == 0 || !isKeyByte(text[i-1]) {
				continue
			}
			r, err := refAt(text, at)
			if err != nil {
				return nil, err
			}
			refs = append(refs, r)
			i = r.keyEnd - 1
		case ')':
			if depth--; depth < 0 {
				return nil, fmt.Errorf("the ')' at character %d closes nothing", i+1)
			}
		}
	}
	if depth > 0 {
		return nil, fmt.Errorf("%d '(' do not close", depth)
	}
	return refs, nil
}

// refAt reads /host/key at the slash.
func refAt(text string, at int) (itemRef, error) {
	slash := strings.IndexByte(text[at+1:], '/')
	if slash < 0 {
		return itemRef{}, fmt.Errorf("the item at character %d has no second '/'; expected /host/key", at+1)
	}
	r := itemRef{hostAt: at + 1, hostEnd: at + 1 + slash, keyAt: at + 2 + slash}
	end, err := keyEnd(text, r.keyAt)
	if err != nil {
		return r, err
	}
	r.keyEnd = end
	return r, nil
}

func isKeyByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_' || b == '-' || b == '.'
}

// keyEnd returns the end of the item key that starts at. Names may hold discovery macros.
func keyEnd(text string, at int) (int, error) {
	i := at
	for i < len(text) && (isKeyByte(text[i]) || text[i] == '{') {
		if text[i] != '{' {
			i++
			continue
		}
		end := macroEnd(text, i)
		if end < 0 {
			break
		}
		i = end
	}
	if i == at {
		return 0, fmt.Errorf("no item key at character %d; expected letters, digits, '.', '_' and '-'", at+1)
	}
	if i < len(text) && text[i] == '[' {
		return bracketEnd(text, i)
	}
	return i, nil
}

// bracketEnd returns the position after the ']' that closes the '[' at. Parameters may be quoted, may be one level of
// list, and may hold macros.
func bracketEnd(text string, at int) (int, error) {
	depth, fresh := 0, true // fresh: at the start of a parameter, where a quote means quoting
	for i := at; i < len(text); i++ {
		switch c := text[i]; {
		case c == '[':
			depth, fresh = depth+1, true
			continue
		case c == ']':
			if depth--; depth == 0 {
				return i + 1, nil
			}
		case c == ',':
			fresh = true
			continue
		case c == ' ':
			continue
		case c == '"' && fresh:
			end := stringEnd(text, i)
			if end < 0 {
				return 0, fmt.Errorf("the quoted parameter at character %d does not end", i+1)
			}
			i = end - 1
		case c == '{':
			if end := macroEnd(text, i); end > 0 {
				i = end - 1
			}
		}
		fresh = false
	}
	return 0, fmt.Errorf("the '[' at character %d does not close", at+1)
}

// stringEnd returns the position after the quote that ends the string at, or -1.
func stringEnd(text string, at int) int {
	for i := at + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// macroEnd returns the position after the macro at, or -1 when there is none: {$NAME}, {$NAME:"context"}, {#NAME},
// {NAME}, {{#NAME}.function(parameters)}.
func macroEnd(text string, at int) int {
	if strings.HasPrefix(text[at:], "{{") {
		if _, end := macrofunc.Parse(text, at); end > 0 {
			return end
		}
		return -1
	}
	i := at + 1
	if i < len(text) && (text[i] == '$' || text[i] == '#') {
		i++
	}
	start := i
	for i < len(text) && (isKeyByte(text[i]) && text[i] != '-') {
		i++
	}
	if i == start || i >= len(text) {
		return -1
	}
	if text[i] == '}' {
		return i + 1
	}
	if text[i] != ':' || at+1 < len(text) && text[at+1] != '$' {
		return -1
	}
	return contextEnd(text, i+1)
}

// contextEnd returns the position after the brace that ends a macro whose context starts at.
func contextEnd(text string, at int) int {
	i := at
	if strings.HasPrefix(text[i:], "regex:") {
		i += len("regex:")
	}
	for i < len(text) && text[i] == ' ' {
		i++
	}
	if i < len(text) && text[i] == '"' {
		if i = stringEnd(text, i); i < 0 {
			return -1
		}
	}
	for depth := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i + 1
			}
			depth--
		}
	}
	return -1
}

// CheckKey reports what is wrong with an item key.
func CheckKey(key string) error {
	if key == "" {
		return fmt.Errorf("%w item key: empty", ErrInvalid)
	}
	if len(key) > maxKeyBytes {
		return fmt.Errorf("%w item key: %d bytes, at most %d", ErrInvalid, len(key), maxKeyBytes)
	}
	end, err := keyEnd(key, 0)
	if err != nil && closesPlainly(key) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w item key %q: %w", ErrInvalid, key, err)
	}
	if end != len(key) {
		return fmt.Errorf("%w item key %q: character %d comes after its end; expected name[parameter,…]", ErrInvalid, key, end+1)
	}
	return nil
}

// closesPlainly reports whether a key ends as Zabbix reads it: a '[' inside of a parameter, as shells and awk have them, opens nothing there. Such a
// key is good for an item, but no expression can name it.
func closesPlainly(key string) bool {
	at := strings.IndexByte(key, '[')
	if at <= 0 || strings.ContainsFunc(key[:at], func(r rune) bool { return r > 127 || !isKeyByte(byte(r)) }) {
		return false
	}
	for {
		at++
		for at < len(key) && key[at] == ' ' {
			at++
		}
		if at < len(key) && (key[at] == '[' || key[at] == '"') {
			return false // lists and quoted parameters are read as everywhere
		}
		end := strings.IndexAny(key[at:], ",]")
		if end < 0 {
			return false
		}
		if at += end; key[at] == ']' {
			return at == len(key)-1
		}
	}
}

// refKeys returns the item keys that expressions name, each once; what cannot be read names none.
func refKeys(expressions ...string) []string {
	var keys []string
	for _, text := range expressions {
		refs, err := itemRefs(text)
		if err != nil {
			continue
		}
		for _, r := range refs {
			if key := text[r.keyAt:r.keyEnd]; !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

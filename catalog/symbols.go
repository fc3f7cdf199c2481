package catalog

import "strings"

// symbols keeps every different text once and names it by a number. Number 0 is the empty text. Each use is counted,
// so that texts of forgotten items do not stay for ever.
type symbols struct {
	ids  map[string]uint32
	text []string
	uses []uint32
	free []uint32
}

// noSymbol is what find returns for a text that nobody uses.
const noSymbol = ^uint32(0)

func newSymbols() *symbols {
	return &symbols{ids: map[string]uint32{"": 0}, text: []string{""}, uses: []uint32{1}}
}

// acquire returns the number of s and counts one use of it.
func (s *symbols) acquire(text string) uint32 {
	if n, ok := s.ids[text]; ok {
		s.uses[n]++
		return n
	}
	text = strings.Clone(text)
	n := uint32(len(s.text))
	if len(s.free) > 0 {
		n = s.free[len(s.free)-1]
		s.free = s.free[:len(s.free)-1]
		s.text[n], s.uses[n] = text, 1
	} else {
		s.text, s.uses = append(s.text, text), append(s.uses, 1)
	}
	s.ids[text] = n
	return n
}

// release takes back one use and reports whether it was the last.
func (s *symbols) release(n uint32) bool {
	if n == 0 {
		return false
	}
	s.uses[n]--
	if s.uses[n] > 0 {
		return false
	}
	delete(s.ids, s.text[n])
	s.text[n] = ""
	s.free = append(s.free, n)
	return true
}

// find returns the number of a text, or noSymbol.
func (s *symbols) find(text string) uint32 {
	if n, ok := s.ids[text]; ok {
		return n
	}
	return noSymbol
}

// findBytes is find without allocation.
func (s *symbols) findBytes(text []byte) uint32 {
	if n, ok := s.ids[string(text)]; ok {
		return n
	}
	return noSymbol
}

package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// position is a place in a file, both from 1; zero for settings that come from elsewhere.
type position struct{ line, column int }

// Mistake is one thing that is wrong.
type Mistake struct {
	// File is the name that was given to Parse; empty for settings that come from elsewhere.
	File string
	// Line and Column count from 1; zero when the setting is not in the file.
	Line, Column int
	// Key is the setting, such as "http.listen"; empty for mistakes of form.
	Key string
	// Text says what was found and what was expected.
	Text string
}

// String is "FILE:LINE:COLUMN: KEY: TEXT", without the parts that are not known.
func (m Mistake) String() string {
	var b strings.Builder
	if m.File != "" {
		b.WriteString(m.File)
		if m.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", m.Line, m.Column)
		}
		b.WriteString(": ")
	}
	if m.Key != "" {
		b.WriteString(m.Key + ": ")
	}
	b.WriteString(m.Text)
	return b.String()
}

// Mistakes are all that is wrong, in the order of the file.
type Mistakes []Mistake

// Error has one line for each mistake.
func (l Mistakes) Error() string {
	lines := make([]string, len(l))
	for i, m := range l {
		lines[i] = m.String()
	}
	return strings.Join(lines, "\n")
}

func (l Mistakes) sort() {
	slices.SortStableFunc(l, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// nearest returns the word of a list that was probably meant, or "".
func nearest(word string, list []string) string {
	best, least := "", len(word)/3+2
	for _, candidate := range list {
		if n := distance(word, candidate); n < least {
			best, least = candidate, n
		}
	}
	return best
}

// distance is the number of letters to add, remove, change or swap to make b of a. Long words are not compared.
func distance(a, b string) int {
	const longest = 64
	if len(a) > longest || len(b) > longest {
		return longest
	}
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before = last
	}
	return row[len(b)]
}

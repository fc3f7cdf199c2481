// Package expr is the language of triggers and calculated items: Zabbix's expression syntax since 5.4.
//
//	last(/db1/system.cpu.util)>90 and avg(/db1/system.cpu.util,5m:now-1h)>50
//
// Parse reads an expression in one pass of a hand-written Pratt parser and yields a compact Program for a stack machine.
// A Program knows no hosts and keys: it names its items by index into the expression's Refs, so that thousands of triggers
// that differ only in their items share one Program (see Interner). Machine evaluates programs without allocation.
//
// Source of the syntax: Zabbix documentation, "Trigger expression" and "Supported functions", version 6.0.
package expr

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Limits of one expression. They are far above what Zabbix stores (2,048 characters) and bound what foreign text can cost.
const (
	// MaxBytes is the longest expression.
	MaxBytes = 16 << 10
	// MaxDepth is how deep parentheses, functions and unary operators may nest.
	MaxDepth = 64
	// MaxFunctions is the number of history functions of one expression, and of items it may name.
	MaxFunctions = 128
	// MaxArguments is the number of arguments of one function.
	MaxArguments = 64
	// maxStack bounds the operands that wait at one moment: at most MaxArguments for each of a few nested calls.
	maxStack = 512
)

// Ref is an item that an expression names.
type Ref struct {
	// Host is the technical name of the host; empty for the host of the object that owns the expression.
	Host string
	// Key is the item key with its parameters.
	Key string
}

// String returns the reference as it is written.
func (r Ref) String() string { return "/" + r.Host + "/" + r.Key }

// Expression is a parsed expression.
type Expression struct {
	Program *Program
	// Refs are the items in the order in which the expression first names them.
	Refs []Ref
}

// SyntaxError says what is wrong where.
type SyntaxError struct {
	// Column counts characters from 1.
	Column int
	// Text says what was expected or is wrong.
	Text string
}

// Error names the column and what was expected.
func (e *SyntaxError) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Text) }

// Errors that a Values may return; the function becomes unknown with the error's text.
var (
	// ErrTooOld means that the values lie before what is kept in memory and may not be read for one evaluation.
	ErrTooOld = errors.New("the time lies before the values that are kept at hand")
	// ErrTooMany means that a window holds more values than one function may read.
	ErrTooMany = errors.New("the period holds too many values")
)

// Parse parses and compiles an expression. The strings of the result are parts of text. The error is a *SyntaxError.
func Parse(text string) (*Expression, error) {
	e, err := ParseFormula(text)
	if err == nil && e.Program.many {
		e.Program.breakBecause("functions of many items (_foreach) are not evaluated in triggers")
	}
	return e, err
}

// ParseFormula is Parse for calculated items, which may also use functions of many items (_foreach). The reference of such a
// function is a pattern: see ParseQuery.
func ParseFormula(text string) (*Expression, error) {
	if len(text) > MaxBytes {
		return nil, &SyntaxError{Column: MaxBytes + 1, Text: fmt.Sprintf("expected at most %d bytes, the expression has %d", MaxBytes, len(text))}
	}
	if !utf8.ValidString(text) {
		return nil, &SyntaxError{Column: 1, Text: "expected UTF-8 text"}
	}
	p := parser{scanner: scanner{text: text}, program: &Program{}}
	if err := p.parse(); err != nil {
		return nil, err
	}
	return &Expression{Program: p.program, Refs: p.refs}, nil
}

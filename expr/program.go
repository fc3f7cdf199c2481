package expr

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
)

// Program is a compiled expression. It is immutable and may be evaluated by several goroutines at the same time, each with
// its own Machine.
type Program struct {
	code    []instruction
	numbers []float64
	texts   []string
	// Funcs are the calls of functions of items, in the order of the text.
	Funcs []Func
	depth int
	// broken says why the program cannot be evaluated, though its syntax is right.
	broken string
	timer  bool
	many   bool
}

// Broken says why the program cannot be evaluated: it names a function that is known but not evaluated here, or a macro
// without a value. It is empty for a program that can be evaluated.
func (p *Program) Broken() string { return p.broken }

// Many reports whether the program reads many items at once (_foreach), which only calculated items may.
func (p *Program) Many() bool { return p.many }

// Timer reports whether the result may change without new values: nodata, date and time functions, trends.
// fuzzytime is none of them: it compares a value with the moment it came, and by the clock every value grows old.
func (p *Program) Timer() bool { return p.timer }

// NewestOnly reports whether the program reads nothing but the newest values of its items.
func (p *Program) NewestOnly() bool {
	for i := range p.Funcs {
		if !p.Funcs[i].NewestOnly() {
			return false
		}
	}
	return true
}

// breakBecause keeps the first reason why the program cannot be evaluated.
func (p *Program) breakBecause(reason string) {
	if p.broken == "" {
		p.broken = reason
	}
}

// noteCall keeps what a call of a function means for the whole program.
func (p *Program) noteCall(k Kind) {
	switch k {
	case kindNodata, kindDate, kindDayOfMonth, kindDayOfWeek, kindNow, kindTime:
		p.timer = true
	}
	p.timer = p.timer || k.isTrend()
	p.many = p.many || k.isForeach()
}

func (p *Program) number(v float64) uint16 {
	p.numbers = append(p.numbers, v)
	return uint16(len(p.numbers) - 1)
}

func (p *Program) text(s string) uint16 {
	p.texts = append(p.texts, s)
	return uint16(len(p.texts) - 1)
}

// key returns bytes that are equal for programs that do the same.
func (p *Program) key(dst []byte) []byte {
	for _, in := range p.code {
		dst = append(dst, byte(in.op), in.argc)
		dst = binary.LittleEndian.AppendUint16(dst, in.arg)
	}
	for _, v := range p.numbers {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
	}
	for _, s := range p.texts {
		dst = binary.AppendUvarint(dst, uint64(len(s)))
		dst = append(dst, s...)
	}
	for i := range p.Funcs {
		f := &p.Funcs[i]
		dst = append(dst, byte(f.Kind))
		dst = binary.LittleEndian.AppendUint16(dst, f.Ref)
		dst = binary.AppendUvarint(dst, uint64(len(f.Params)))
		dst = append(dst, f.Params...)
	}
	return append(dst, p.broken...)
}

// FailureText says why an evaluation failed, in words that name the function and its item.
func (p *Program) FailureText(f Failure, refs []Ref) string {
	return p.failureText(f, refs, true)
}

// FailureTextWithoutParams is FailureText for expressions whose parameters hold what people must not see: there is … in their place.
func (p *Program) FailureTextWithoutParams(f Failure, refs []Ref) string {
	return p.failureText(f, refs, false)
}

func (p *Program) failureText(f Failure, refs []Ref, params bool) string {
	if f.Code == FailBroken {
		return p.broken
	}
	if f.Code == FailNone {
		return ""
	}
	if f.Func < 0 || int(f.Func) >= len(p.Funcs) {
		return f.Code.text()
	}
	fn := &p.Funcs[f.Func]
	if f.Code == FailMissing {
		return fmt.Sprintf("item %s does not exist", refs[fn.Ref])
	}
	shown := fn.Params
	if !params && shown != "" {
		shown = ",…"
	}
	return fmt.Sprintf("%s(%s%s): %s", fn.name, refs[fn.Ref], shown, f.Code.text())
}

// Interner shares equal programs. It may be used by several goroutines.
type Interner struct {
	mu       sync.Mutex
	programs map[string]*interned
	buf      []byte
}

type interned struct {
	program *Program
	users   int
}

// Intern returns the program that stands for all programs equal to p. Each call is undone by one Release.
func (n *Interner) Intern(p *Program) *Program {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.programs == nil {
		n.programs = make(map[string]*interned)
	}
	n.buf = p.key(n.buf[:0])
	if known, ok := n.programs[string(n.buf)]; ok {
		known.users++
		return known.program
	}
	n.programs[string(n.buf)] = &interned{program: p.compact(), users: 1}
	return p
}

// Release forgets one use of a program.
func (n *Interner) Release(p *Program) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.buf = p.key(n.buf[:0])
	known, ok := n.programs[string(n.buf)]
	if !ok {
		return
	}
	if known.users--; known.users == 0 {
		delete(n.programs, string(n.buf))
	}
}

// Len returns the number of different programs.
func (n *Interner) Len() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.programs)
}

// compact gives up the spare room of a program that stays.
func (p *Program) compact() *Program {
	p.code = append([]instruction(nil), p.code...)
	p.numbers = append([]float64(nil), p.numbers...)
	p.Funcs = append([]Func(nil), p.Funcs...)
	for i := range p.Funcs {
		p.Funcs[i].Params = string([]byte(p.Funcs[i].Params))
	}
	for i := range p.texts {
		p.texts[i] = string([]byte(p.texts[i]))
	}
	return p
}

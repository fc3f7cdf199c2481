package expr

// opcode is an operator, or another instruction of a program.
type opcode uint8

const (
	opNone opcode = iota
	opOr
	opAnd
	opEqual
	opNotEqual
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
	opAdd
	opSubtract
	opMultiply
	opDivide
	opNot
	opNegate
	opNumber  // push numbers[arg]
	opText    // push texts[arg]
	opMacro   // push the macro texts[arg]
	opHistory // push the result of Funcs[arg]
	opCall    // replace argc operands by the result of function Kind(arg)
)

// priorities are how strongly binary operators bind. Unary operators bind stronger than all of them: minus
// strongest, then not.
var priorities = [...]uint8{
	opOr: 1, opAnd: 2, opEqual: 3, opNotEqual: 3,
	opLess: 4, opLessEqual: 4, opGreater: 4, opGreaterEqual: 4,
	opAdd: 5, opSubtract: 5, opMultiply: 6, opDivide: 6, opNot: 7, opNegate: 8,
}

// instruction is one step of a program.
type instruction struct {
	op   opcode
	argc uint8
	arg  uint16
}

// parser compiles while it reads: operands are emitted when met, an operator after its operands.
type parser struct {
	scanner
	program *Program
	refs    []Ref
	depth   int
	stack   int
}

func (p *parser) parse() error {
	if p.peek() == 0 {
		return p.fail(p.at, "expected an expression, found nothing")
	}
	if err := p.expression(0); err != nil {
		return err
	}
	if p.peek() != 0 {
		return p.fail(p.at, "expected an operator or the end, found %s", p.found())
	}
	return nil
}

// expression reads operands joined by operators that bind stronger than limit.
func (p *parser) expression(limit uint8) error {
	if p.depth++; p.depth > MaxDepth {
		return p.fail(p.at, "expected at most %d nested parentheses and functions", MaxDepth)
	}
	defer func() { p.depth-- }()
	if err := p.operand(); err != nil {
		return err
	}
	for {
		before := p.at
		op := p.operator()
		if op == opNone {
			return nil
		}
		if priorities[op] <= limit {
			p.at = before
			return nil
		}
		if err := p.expression(priorities[op]); err != nil {
			return err
		}
		p.emit(instruction{op: op}, -1)
	}
}

// operand reads a constant, macro, function call, unary operator or an expression in parentheses.
func (p *parser) operand() error {
	switch c := p.peek(); {
	case c == 0:
		return p.fail(p.at, "expected an operand, found the end")
	case c == '(':
		return p.parentheses()
	case c == '-':
		p.at++
		return p.unary(opNegate)
	case c == '"':
		text, err := p.quoted()
		if err != nil {
			return err
		}
		return p.push(opText, p.program.text(text))
	case c == '{':
		text, err := p.macro()
		if err != nil {
			return err
		}
		return p.push(opMacro, p.program.text(text))
	case isDigit(c) || c == '.':
		v, err := p.number()
		if err != nil {
			return err
		}
		return p.push(opNumber, p.program.number(v))
	case c == '/':
		return p.fail(p.at, "expected an operand; an item stands in a function such as last(/host/key)")
	case isLetter(c):
		if p.word() == "not" {
			p.at += len("not")
			return p.unary(opNot)
		}
		return p.call()
	}
	return p.fail(p.at, "expected an operand, found %s", p.found())
}

func (p *parser) parentheses() error {
	open := p.at
	p.at++
	if err := p.expression(0); err != nil {
		return err
	}
	if p.peek() != ')' {
		return p.fail(p.at, "expected an operator or ) for the ( in column %d, found %s", open+1, p.found())
	}
	p.at++
	return nil
}

func (p *parser) unary(op opcode) error {
	if err := p.expression(priorities[op]); err != nil {
		return err
	}
	p.emit(instruction{op: op}, 0)
	return nil
}

// push emits an instruction that adds an operand.
func (p *parser) push(op opcode, arg uint16) error {
	if p.stack+1 > maxStack {
		return p.fail(p.at, "expected at most %d operands that wait for an operator", maxStack)
	}
	p.emit(instruction{op: op, arg: arg}, 1)
	return nil
}

// emit appends an instruction that changes the number of operands by growth.
func (p *parser) emit(in instruction, growth int) {
	p.program.code = append(p.program.code, in)
	p.stack += growth
	p.program.depth = max(p.program.depth, p.stack)
}

// call reads name(…): a history function if its first argument is an item, else a function of expressions.
func (p *parser) call() error {
	start := p.at
	name := p.word()
	p.at += len(name)
	if p.peek() != '(' {
		p.at = start
		return p.fail(start, "expected an operand, found the word %s", name)
	}
	p.at++
	known, ok := functions[name]
	if !ok {
		return p.fail(start, "expected a function, %s is not known", name)
	}
	if p.peek() == '/' {
		return p.historyCall(start, name, known)
	}
	if known.plain == none {
		return p.fail(p.at, "expected an item /host/key as first argument of %s", name)
	}
	return p.plainCall(start, name, known)
}

// plainCall reads the arguments of a function of expressions.
func (p *parser) plainCall(start int, name string, known function) error {
	count := 0
	if p.peek() != ')' {
		for {
			if err := p.expression(0); err != nil {
				return err
			}
			if count++; count > MaxArguments {
				return p.fail(p.at, "expected at most %d arguments of %s", MaxArguments, name)
			}
			if p.peek() != ',' {
				break
			}
			p.at++
		}
	}
	if p.peek() != ')' {
		return p.fail(p.at, "expected , or ) in the arguments of %s, found %s", name, p.found())
	}
	p.at++
	if count < int(known.plain.minimum) || count > int(known.plain.maximum) {
		return p.fail(start, "expected %s of %s, found %d", known.plain, name, count)
	}
	if p.stack-count+1 > maxStack {
		return p.fail(p.at, "expected at most %d operands that wait for an operator", maxStack)
	}
	p.emit(instruction{op: opCall, argc: uint8(count), arg: uint16(known.kind)}, 1-count)
	p.program.noteCall(known.kind)
	return nil
}

// historyCall reads /host/key and the parameters behind it.
func (p *parser) historyCall(start int, name string, known function) error {
	if known.history == none {
		return p.fail(p.at, "expected a number or expression as first argument of %s, found an item", name)
	}
	ref, err := p.query()
	if err != nil {
		return err
	}
	var params []parameter
	textStart := p.at
	for p.peek() == ',' {
		p.at++
		p.space()
		at := p.at
		text, quoted, err := p.parameter()
		if err != nil {
			return err
		}
		params = append(params, parameter{text: text, quoted: quoted, at: at})
		if len(params) > MaxArguments {
			return p.fail(at, "expected at most %d arguments of %s", MaxArguments, name)
		}
	}
	if p.peek() != ')' {
		return p.fail(p.at, "expected , or ) in the arguments of %s, found %s", name, p.found())
	}
	text := p.text[textStart:p.at]
	p.at++
	if n := len(params) + 1; n < int(known.history.minimum) || n > int(known.history.maximum) {
		return p.fail(start, "expected %s of %s, found %d", known.history, name, n)
	}
	if len(p.program.Funcs) >= MaxFunctions {
		return p.fail(start, "expected at most %d functions of items", MaxFunctions)
	}
	f := Func{Kind: known.kind, Params: text, Ref: p.ref(ref)}
	if err := p.bind(&f, params); err != nil {
		return err
	}
	p.program.Funcs = append(p.program.Funcs, f)
	p.program.noteCall(known.kind)
	return p.push(opHistory, uint16(len(p.program.Funcs)-1))
}

// ref returns the index of r among the items, adding it if it is new.
func (p *parser) ref(r Ref) uint16 {
	for i := range p.refs {
		if p.refs[i] == r {
			return uint16(i)
		}
	}
	p.refs = append(p.refs, r)
	return uint16(len(p.refs) - 1)
}

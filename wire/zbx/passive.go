package zbx

import (
	"bytes"
	"strconv"
	"time"
)

// notError is the whole answer of agents before 7.0 that had a passing problem.
const notError = "ZBX_ERROR"

// PassiveKind says what a passive agent answered.
type PassiveKind uint8

// The kinds of answers.
const (
	// PassiveValue is a value.
	PassiveValue PassiveKind = iota
	// PassiveNone is no value, which is no error.
	PassiveNone
	// PassiveNotSupported says that the key cannot be measured; the text is the reason.
	PassiveNotSupported
	// PassiveFailed says that the agent refuses the request; the text is the reason.
	PassiveFailed
)

// PassiveAnswer is what a passive agent answered. Its text lies in the body that it was decoded from.
type PassiveAnswer struct {
	Kind PassiveKind
	Text []byte
	// Version and Variant are what agents from 7.0 say of themselves.
	Version []byte
	Variant uint64
}

// AppendPassiveRequest appends the request for one key as agents from 7.0 read it. Before, the request is the key alone.
func AppendPassiveRequest(dst []byte, key string, timeout time.Duration) []byte {
	dst = append(dst, `{"request":"passive checks","data":[{"key":`...)
	dst = AppendString(dst, key)
	dst = append(dst, `,"timeout":"`...)
	dst = strconv.AppendInt(dst, max(1, int64(timeout/time.Second)), 10)
	return append(dst, `s"}]}`...)
}

// DecodePassiveText reads the answer of an agent before 7.0, which may have any text.
func DecodePassiveText(body []byte) PassiveAnswer {
	if rest, ok := bytes.CutPrefix(body, []byte(NotSupported)); ok && (len(rest) == 0 || rest[0] == 0) {
		text := bytes.Trim(rest, "\x00")
		if len(text) == 0 {
			text = []byte("the agent does not support the key")
		}
		return PassiveAnswer{Kind: PassiveNotSupported, Text: text}
	}
	if string(body) == notError {
		return PassiveAnswer{Kind: PassiveNone}
	}
	text := bytes.TrimLeft(bytes.TrimRight(body, " \r\n"), " ")
	return PassiveAnswer{Kind: PassiveValue, Text: text}
}

// DecodePassiveJSON reads the answer of an agent from 7.0 to a request for one key. It unescapes strings in place. An answer
// that does not begin as JSON is of an agent before 7.0: asJSON is false. What is JSON and no such answer is a *SyntaxError.
func DecodePassiveJSON(body []byte) (a PassiveAnswer, asJSON bool, err error) {
	s := scanner{b: body}
	if s.peek() != '{' {
		return a, false, nil
	}
	var data, failure []byte
	var haveVersion bool
	first := true
	for {
		more, err := s.next(&first, '}')
		if err != nil {
			return a, true, err
		}
		if !more {
			break
		}
		k, err := s.key()
		if err == nil {
			switch string(k) {
			case "version":
				haveVersion = true
				err = name(&s, &a.Version)
			case "variant":
				err = number(&s, &a.Variant)
			case "data":
				err = array(&s, &data)
			case "error":
				failure, _, err = s.scalar()
			default:
				err = s.skip(1)
			}
		}
		if err != nil {
			return a, true, err
		}
	}
	if failure != nil {
		a.Kind, a.Text = PassiveFailed, failure
		return a, true, nil
	}
	if !haveVersion || data == nil {
		return a, true, s.fail("the members version and data")
	}
	err = a.row(data)
	return a, true, err
}

// row reads the first element of the data.
func (a *PassiveAnswer) row(data []byte) error {
	s := scanner{b: data}
	first, inRow := true, true
	more, err := s.next(&first, ']')
	if err != nil || !more || s.peek() != '{' {
		return s.fail("an object for the key")
	}
	a.Kind = PassiveNone
	for {
		more, err := s.next(&inRow, '}')
		if err != nil || !more {
			return err
		}
		k, err := s.key()
		if err != nil {
			return err
		}
		field := string(k)
		text, kind, err := s.scalar()
		if err != nil {
			return err
		}
		switch {
		case field == "value" && kind != kindNone && a.Kind == PassiveNone:
			a.Kind, a.Text = PassiveValue, text
		case field == "error" && kind != kindNone:
			a.Kind, a.Text = PassiveNotSupported, text
		}
	}
}

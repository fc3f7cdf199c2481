// Package media sends one message to one address: by e-mail, to a webhook, or through a script.
//
// A sender does one attempt and says how it went; retries, order and grouping are the business of package alert. All senders are
// bounded in time by the context and in memory by limits of their own, and may be used by several goroutines.
package media

import (
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of what a message and an answer may hold.
const (
	// MaxSubjectBytes bounds a subject: longer ones are cut, since mail servers refuse long header lines.
	MaxSubjectBytes = 512
	// maxAnswerBytes bounds what is read of a server's or script's answer.
	maxAnswerBytes = 64 << 10
	// maxToldBytes bounds how much of an answer is given back.
	maxToldBytes = 2 << 10
)

// ErrSettings says that a sender cannot work with its settings, so that trying again is of no use.
var ErrSettings = errors.New("wrong settings")

// ErrHeld says that nothing was sent because the same was done a moment ago for another problem, which is as it should be.
var ErrHeld = errors.New("done for another problem")

// Message is what is sent.
type Message struct {
	// To is the address in the medium's own form.
	To            string
	Subject, Body string
	// ID names the message for the world: letters, digits, dots and dashes; empty for none. Thread is the ID of the message that this one follows.
	ID, Thread string
	// Expand replaces the macros of one text by their values for this message; nil leaves texts as they are.
	Expand func(string) string
}

func (m *Message) expand(text string) string {
	if m.Expand == nil {
		return text
	}
	return m.Expand(text)
}

// Sender sends messages.
type Sender interface {
	// Send does one attempt. The text is what the other side answered, shortened, for people.
	Send(ctx context.Context, m Message) (answer string, err error)
}

// shorten makes bytes from outside readable: valid text, no control characters, at most maxToldBytes.
func shorten(b []byte) string {
	if len(b) > maxToldBytes {
		b = b[:maxToldBytes]
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == utf8.RuneError || unicode.IsControl(r):
			return -1
		}
		return r
	}, string(b)))
}

// oneLine makes a text fit for a header: no line breaks or other control characters, at most limit bytes.
func oneLine(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) > limit {
		for limit > 0 && !utf8.RuneStart(text[limit]) {
			limit--
		}
		text = text[:limit]
	}
	return text
}

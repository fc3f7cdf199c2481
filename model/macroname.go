package model

import "strings"

// IsMacroName reports whether a text is the name of a user macro: {$NAME} or {$NAME:context}, with capital letters, digits, _ and . in the name.
func IsMacroName(text string) bool {
	inside, begins := strings.CutPrefix(text, "{$")
	inside, ends := strings.CutSuffix(inside, "}")
	name, _, _ := strings.Cut(inside, ":")
	return begins && ends && name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") == ""
}

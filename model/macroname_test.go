package model

import "testing"

func TestIsMacroName(t *testing.T) {
	for text, want := range map[string]bool{
		"{$A}": true, "{$A.B_9}": true, "{$A:/tmp}": true, `{$A:regex:"^/(tmp|var)$"}`: true, "{$A:{#FSNAME}}": true,
		"": false, "{$}": false, "{$:x}": false, "{$a}": false, "{$A B}": false, "{$A": false, "$A}": false, "{#A}": false, "{$A-B}": false,
	} {
		if got := IsMacroName(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

package macrofunc

import "testing"

// No value makes a user macro, by itself, with another one, with the text around it or through a function; what is not changed stays.
func TestExpand_userMacros(t *testing.T) {
	row := map[string]string{"{#M}": "{$SECRET}", "{#A}": "x{", "{#B}": "$SECRET}", "{#E}": "{x$SECRET}", "{#D}": "$RECYCLE.BIN", "{#J}": `{"a":1}`}
	for text, want := range map[string]string{
		"name {#M}":                         "name { $SECRET}",
		"{#A}{#B}":                          "x{ $SECRET}",
		"{#A}$SECRET}":                      "x{ $SECRET}",
		"{{#B}":                             "{ $SECRET}",
		`{{#E}.regsub("(.)x(.*)", "\1\2")}`: "{ $SECRET}",
		`{$LOW:"{#M}"}`:                     `{$LOW:"{ $SECRET}"}`,
		"{#D} {#J} {$OWN}":                  `$RECYCLE.BIN {"a":1} {$OWN}`,
	} {
		if got := Expand(text, row, nil); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

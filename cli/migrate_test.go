package cli

import "testing"

// A report goes into logs, where no password belongs.
func TestShownPlace(t *testing.T) {
	for to, want := range map[string]string{
		"./data": "./data", "postgres://tidemark:hidden@db/tidemark": "PostgreSQL", "postgresql://db/tidemark": "PostgreSQL", "host=db password=hidden": "PostgreSQL",
	} {
		if got := shownPlace(to); got != want {
			t.Errorf("%q is shown as %q, want %q", to, got, want)
		}
	}
}

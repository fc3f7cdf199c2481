package model

import "testing"

func TestConceal(t *testing.T) {
	f := func(secrets []Macro, text, want string) {
		t.Helper()
		if got := (&Item{Collect: &Collect{Secrets: secrets}}).Conceal(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if got := (&Item{}).Conceal("hunter2"); got != "hunter2" {
		t.Errorf("an item without secrets: %q", got)
	}
	f(nil, "hunter2", "hunter2")
	f([]Macro{{Name: "{$EMPTY}"}}, "hunter2", "hunter2")
	two := []Macro{{Name: "{$PORT}", Value: "22"}, {Name: "{$PW}", Value: "hunter2"}}
	f(two, `service "hunter2" is not known on hunter2:22`, `service "{$PW}" is not known on {$PW}:{$PORT}`)
	f([]Macro{{Name: "{$SHORT}", Value: "key"}, {Name: "{$LONG}", Value: "keys of mine"}}, "keys of mine, key", "{$LONG}, {$SHORT}")
	f([]Macro{{Name: "{$A}", Value: "{$B}"}, {Name: "{$B}", Value: "A"}}, "{$B}A", "{$A}{$B}")
	odd := []Macro{{Name: "{$PW}", Value: `a "b" c/d`}}
	f(odd, `got "a \"b\" c/d"`, `got "{$PW}"`)
	f(odd, `Get "http://x/?q=a+%22b%22+c%2Fd"`, `Get "http://x/?q={$PW}"`)
	f(odd, `Get "http://x/a%20%22b%22%20c%2Fd"`, `Get "http://x/{$PW}"`)
	f(odd, `a "b" c/d`, "{$PW}")
	// What was cut off may end within a secret.
	f(two, `failed for value "user hunt…": no number`, `failed for value "user {$PW}…": no number`)
	f(two, "user hunter", "user {$PW}")
	f(two, "user hun", "user hun")
}

func TestHasSecret(t *testing.T) {
	i := &Item{Collect: &Collect{Secrets: []Macro{{Name: "{$EMPTY}"}, {Name: "{$PW}", Value: "hunter2"}}}}
	if i.HasSecret("hunter", "x") || !i.HasSecret("x", "(hunter2") || (&Item{}).HasSecret("hunter2") {
		t.Error("a secret in a text is not seen, or one that is not there")
	}
}

package cli

import "testing"

func TestCheckAnswer(t *testing.T) {
	for want, a := range map[string]checkAnswer{
		"asked for 1 item now\n":                                                        {Items: 1},
		"asked for 1 item by proxy dmz within seconds\n":                                {Items: 1, Proxy: "dmz"},
		"asked for 3 items by proxy dmz within seconds, for 1 item by the server now\n": {Items: 4, Proxy: "dmz", ByServer: 1},
		"asked for 2 items now\nnot asked for 2 items, whose values are sent, come of a scenario of a proxy, or which cannot be asked for in their state: a, …\n": {
			Items: 2, NotAsked: 2, NotAskedKeys: []string{"a"},
		},
	} {
		if got := a.String(); got != want {
			t.Errorf("%+v: %q, want %q", a, got, want)
		}
	}
}

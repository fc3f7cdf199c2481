package config

import (
	"fmt"
	"testing"
)

func TestParseNetworks(t *testing.T) {
	got, err := ParseNetworks("10.1.2.3/8, fe80::1 ,,192.168.0.1")
	if want := "[10.0.0.0/8 fe80::1/128 192.168.0.1/32]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v, want %s", got, err, want)
	}
	for _, text := range []string{"x", "10.0.0.0/33", "10.0.0.1-5"} {
		if _, err := ParseNetworks(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

package server

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPressure reads what the kernel says of waiting; without that the machine is not busy.
func TestPressure(t *testing.T) {
	const rest = " avg60=3.00 avg300=0.50 total=123456\nfull avg10=99.00 avg60=0.00 avg300=0.00 total=0\n"
	name := filepath.Join(t.TempDir(), "pressure")
	if got := pressure(name); got != 0 {
		t.Errorf("without a file it is %v", got)
	}
	for text, want := range map[string]float64{
		"some avg10=61.25" + rest: 61.25, "some avg10=0.00" + rest: 0, "some avg10=100.00" + rest: 100, "": 0, "some avg10=" + rest: 0, "some avg10=many" + rest: 0,
		"some avg60=61.25": 0,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := pressure(name); got != want {
			t.Errorf("%q is %v, expected %v", text, got, want)
		}
	}
}

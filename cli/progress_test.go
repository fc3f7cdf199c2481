package cli

import (
	"strings"
	"testing"
	"time"
)

// TestProgressLine says how far something is and how long it will take, once a second at most.
func TestProgressLine(t *testing.T) {
	var out strings.Builder
	p := &progressLine{w: &out, began: time.Now().Add(-time.Hour), said: time.Now().Add(-time.Minute)}
	p.say(25, 100, "datafile-1-3.ndf")
	p.say(26, 100, "too soon")
	if got := out.String(); !strings.HasPrefix(got, " 25 % datafile-1-3.ndf, 3h0m") || !strings.HasSuffix(got, " left\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("a quarter in an hour says %q, expected three hours left", got)
	}
	for done, want := range map[int64]string{0: "  0 % x\n", 9: "  0 % x\n", 1000: "100 % x\n"} {
		out.Reset()
		p.said = time.Now().Add(-time.Minute)
		if p.say(done, 1000, "x"); out.String() != want {
			t.Errorf("%d of 1000 says %q, expected %q", done, out.String(), want)
		}
	}
	out.Reset()
	p.said = time.Now().Add(-time.Minute)
	if p.say(0, 0, "x"); out.Len() > 0 {
		t.Errorf("nothing to do says %q", out.String())
	}
}

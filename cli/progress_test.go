package cli

import (
	"strings"
	"testing"
	"time"
)

// TestProgressLine says where something is, and once where it stands still.
func TestProgressLine(t *testing.T) {
	var out strings.Builder
	p := progressLine{w: &out, began: time.Now()}
	for _, done := range []int64{50, 50, 50, 100, 100} {
		p.said = time.Time{} // a second has passed
		p.say(done, 100, "file")
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], " 50 % file, ") || lines[1] != "100 % file" {
		t.Errorf("it says %q", lines)
	}
}

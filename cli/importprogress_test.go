package cli

import (
	"strings"
	"testing"
	"time"
)

func TestBusy(t *testing.T) {
	var out strings.Builder
	b := &busy{w: &out}
	ticks, done, ended := make(chan time.Time), make(chan struct{}), make(chan struct{})
	go func() { defer close(ended); b.run(ticks, done) }()
	ticks <- time.Time{} // nothing is done yet
	b.with("reading items of 100 of 300 hosts and templates")
	b.say("part 1")
	ticks <- time.Time{}
	close(done)
	<-ended
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || lines[0] != "part 1" || !strings.HasPrefix(lines[1], "reading items of 100 of 300 hosts and templates … (") {
		t.Errorf("it said %q", lines)
	}
	stop := b.start()
	stop()
}

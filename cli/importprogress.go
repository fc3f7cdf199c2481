package cli

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progressEvery is how often a command that is busy with one thing says so.
const progressEvery = 10 * time.Second

// busy says on w what a command does, again and again while it goes on. It is safe for concurrent use.
type busy struct {
	mu    sync.Mutex
	w     io.Writer
	what  string
	began time.Time
}

// with notes what is done from now on; it is said only when it takes long.
func (b *busy) with(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.what, b.began = what, time.Now()
}

// say writes a line at once.
func (b *busy) say(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintln(b.w, line)
}

// run says at each tick what is done, until the channel done is closed.
func (b *busy) run(ticks <-chan time.Time, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-ticks:
			b.mu.Lock()
			if b.what != "" {
				fmt.Fprintf(b.w, "%s … (%v so far)\n", b.what, time.Since(b.began).Round(time.Second))
			}
			b.mu.Unlock()
		}
	}
}

// start runs it until the function that is returned is called.
func (b *busy) start() (stop func()) {
	ticker := time.NewTicker(progressEvery)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() { defer close(ended); b.run(ticker.C, done) }()
	return func() {
		ticker.Stop()
		close(done)
		<-ended
	}
}

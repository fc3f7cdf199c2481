package storagetest

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Writer is a test that, in a process of its own, writes until it is killed and says "acked N" in a line after each acknowledgement.
type Writer struct {
	// Test is the name of the test, Env what tells it that it is the child.
	Test string
	Env  []string
	// Lines is after how many lines it is killed at most, After how long after that at most; zero is at once.
	Lines int
	After time.Duration
}

// KillOnce starts a writer, kills it after a while, and returns the last number that it said was acknowledged.
func KillOnce(t *testing.T, w Writer, r *rand.Rand) int {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^"+w.Test+"$")
	child.Env = append(os.Environ(), w.Env...)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	acked, lines, enough := 0, 0, 1+r.IntN(w.Lines)
	for in := bufio.NewScanner(out); in.Scan(); lines++ {
		if _, err := fmt.Sscanf(in.Text(), "acked %d", &acked); err != nil {
			t.Fatalf("the child said %q", in.Text())
		}
		if lines == enough {
			if w.After > 0 {
				time.Sleep(time.Duration(r.Int64N(int64(w.After))))
			}
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = child.Wait() // it was killed
	if lines <= enough {
		t.Fatalf("the child ended by itself after %d lines", lines)
	}
	return acked
}

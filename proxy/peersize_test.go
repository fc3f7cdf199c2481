package proxy

import (
	"math"
	"strings"
	"testing"

	"tidemark/collectors"
	"tidemark/wire/zbx"
)

// The largest answer with tasks fits: commands of which each byte takes six in JSON, and as many items as are given at once.
func TestPeer_largestAnswer(t *testing.T) {
	var list []zbx.Task
	for range 4 {
		list = append(list, zbx.Task{
			Type: zbx.TaskCommand, ID: math.MaxInt64, Host: math.MaxInt64, Kind: zbx.ScriptCommand, Command: strings.Repeat("\x01", collectors.MaxCommandBytes),
		})
	}
	for range 1000 {
		list = append(list, zbx.Task{Type: zbx.TaskCheckNow, ID: math.MaxInt64, Item: math.MaxInt64})
	}
	text := zbx.AppendTasks([]byte("{}"), list)
	if n := len(text); n < 4*6*collectors.MaxCommandBytes || n > maxAnswerBytes-64<<10 {
		t.Errorf("an answer has %d bytes and at most %d are taken", n, maxAnswerBytes)
	}
}

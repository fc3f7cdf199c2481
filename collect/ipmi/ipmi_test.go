package ipmi

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"tidemark/collect/poller"
	"tidemark/model"
	"tidemark/wire/ipmi"
)

// test/collect asks a real controller; here is what needs none.
func TestChecker_settings(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	f := func(access model.IPMIAccess, want poller.Outcome, text string) {
		t.Helper()
		c := New(Options{Resend: 5 * time.Millisecond})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		results := make([]poller.Result, 2)
		task := &poller.Task{Address: silent.LocalAddr().String(), Host: &model.Host{IPMI: &access}, Item: &model.Item{Key: "k"}}
		c.Check(ctx, []*poller.Task{task, task}, results)
		for _, r := range results {
			if r.Outcome != want || !strings.Contains(string(r.Text), text) {
				t.Errorf("%+v: %d %s, want %d %s", access, r.Outcome, r.Text, want, text)
			}
		}
	}
	f(model.IPMIAccess{}, poller.Unreachable, "did not answer in time")
	f(model.IPMIAccess{AuthType: "MD5"}, poller.NotSupported, "IPMI 1.5, which is not spoken")
	f(model.IPMIAccess{Privilege: "OEM"}, poller.NotSupported, "expected CALLBACK, USER, OPERATOR or ADMIN")
	f(model.IPMIAccess{Username: "a-name-that-is-too-long"}, poller.NotSupported, "more than 16 bytes")
}

func TestChecker_refused(t *testing.T) {
	c := New(Options{})
	key := controllerKey{address: "a"}
	if err := c.wasRefused(key); err != nil {
		t.Fatal(err)
	}
	c.remember(key, &ipmi.RefusedError{Reason: "no"})
	if err := c.wasRefused(key); err == nil || err.Error() != "no" {
		t.Error(err)
	}
	c.refused[key] = refusal{time.Now().Add(-time.Second), &ipmi.RefusedError{}}
	if err := c.wasRefused(key); err != nil || len(c.refused) != 0 {
		t.Errorf("a minute later: %v", err)
	}
}

func TestCall_find(t *testing.T) {
	l := &call{known: &sensors{records: []*ipmi.Record{{ID: "A", Entity: 7, Instance: 1}, {ID: "B", Entity: 7, Instance: 2}}}}
	for text, want := range map[string]int{"A": 0, "id:B": 1, "name:(7.2).B": 1, "name:B": -1, "C": -1, "id:": -1} {
		if got := l.find(text); got != want {
			t.Errorf("%s is %d, want %d", text, got, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	high := 80.1234567
	text, err := json.Marshal(describe(&ipmi.Record{ID: "T", Type: 1, Reading: 1, Units: "C"}, ipmi.State{Value: 21.4999999999, HasValue: true}, &[6]*float64{ipmi.UpperCritical: &high}))
	const want = `{"id":"T","name":"(0.0).T","sensor":{"type":1,"text":"temperature"},"reading":{"type":1,"text":"threshold"},"state":{"type":0,"text":"ok"},"value":21.5,"units":"C","threshold":{"lower":{},"upper":{"crit":80.123457}}}`
	if err != nil || string(text) != want {
		t.Errorf("%s %v", text, err)
	}
}

package snmp

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"

	"tidemark/collect/poller"
	"tidemark/model"
)

// called makes checks as a poller does, each list a call.
func called(t *testing.T, c *Checker, lists ...[]*poller.Task) [][]poller.Result {
	t.Helper()
	calls, results := make([]*poller.Call, len(lists)), make([][]poller.Result, len(lists))
	for i, tasks := range lists {
		results[i] = make([]poller.Result, len(tasks))
		calls[i] = &poller.Call{Tasks: tasks, Results: results[i], Deadline: time.Now().Add(callTimeout)}
	}
	ended := make(chan *poller.Call, len(calls))
	c.Call(context.Background(), calls, func(list []*poller.Call) {
		for _, call := range list {
			ended <- call
		}
	})
	for range calls {
		select {
		case <-ended:
		case <-time.After(2 * callTimeout):
			t.Fatal("a call does not end")
		}
	}
	return results
}

// TestCall compares calls with Check, which is the simple version, for devices of all kinds.
func TestCall(t *testing.T) {
	all := append([]gosnmp.SnmpPDU{
		{Name: ".1.3.6.1.4.1.1.0", Type: gosnmp.OpaqueDouble, Value: 1.5},
		{Name: ".1.3.6.1.4.1.2.0", Type: gosnmp.Null},
		{Name: ".1.3.6.1.4.1.3.0", Type: gosnmp.Integer, Value: -1 << 31},
		{Name: ".1.3.6.1.4.1.4.0", Type: gosnmp.Gauge32, Value: uint32(1 << 31)},
		octets(".1.3.6.1.4.1.5.0", ""),
	}, table...)
	plain, small, big := startDevice(t, all...), startDevice(t, all...), startDevice(t, all...)
	small.mu.Lock()
	small.most = 4
	small.mu.Unlock()
	big.mu.Lock()
	big.most, big.tooBig = 4, true
	big.mu.Unlock()
	good := []string{
		"1.3.6.1.2.1.1.5.0", ".1.3.6.1.2.1.1.3.0", "1.3.6.1.2.1.2.2.1.6.2", "1.3.6.1.2.1.2.2.1.8.2", "1.3.6.1.2.1.2.2.1.10.2", "1.3.6.1.2.1.2.2.1.10.10",
		"1.3.6.1.2.1.4.20.1.1.0", "1.3.6.1.2.1.1.2.0", "1.3.6.1.4.1.3.0", "1.3.6.1.4.1.4.0", "1.3.6.1.4.1.5.0",
	}
	lists := [][]string{good, {good[0]}, append([]string{"1.3.9.9"}, good...), {"1.3.9.9"}, {"1.3.6.1.4.1.1.0", good[1]}, {good[0], "1.3.6.1.4.1.2.0"}, {"bad"}, {""}, {"walk[1.3.6.1.2.1.1]", good[0]}, {"get[" + good[1] + "]"}}
	accesses := []model.SNMPAccess{
		{Version: "SNMPV2", Community: "public"},
		{Version: "SNMPV1", Community: "public"},
		{Version: "SNMPV2", Community: "public", Single: true},
		{Version: "SNMPV2", Community: "wrong"},
		{Version: "SNMPV9"},
		{Version: "SNMPV3", SecurityName: "nobody"},
	}
	// Where nothing answers, only the time that is waited ends a check; where something does, a busy machine must not.
	silent, answered := [2]*Checker{}, [2]*Checker{}
	for i := range 2 {
		silent[i], answered[i] = New(Options{Timeout: 100 * time.Millisecond}), New(Options{Timeout: time.Second})
		defer silent[i].Close()
		defer answered[i].Close()
	}
	for _, d := range []*device{plain, small, big, {address: "localhost" + plain.address[len("127.0.0.1"):]}, {address: "nowhere"}} {
		var quiet, loud [][]*poller.Task
		for i, access := range accesses {
			lists := lists
			if i >= 3 { // Nothing answers, which takes its time.
				lists = lists[:2]
			}
			for _, oids := range lists {
				var tasks []*poller.Task
				for _, oid := range oids {
					tasks = append(tasks, d.task(access, oid))
				}
				if i >= 3 {
					quiet = append(quiet, tasks)
				} else {
					loud = append(loud, tasks)
				}
			}
		}
		compareCalls(t, silent, quiet)
		compareCalls(t, answered, loud)
	}
	if silent[0].asker.datagrams.Taken(0) || answered[0].asker.datagrams.Taken(0) {
		t.Error("a question has the id 0")
	}
}

// compareCalls makes checks by Call of the one checker and by Check of the other.
func compareCalls(t *testing.T, c [2]*Checker, made [][]*poller.Task) {
	t.Helper()
	for i, got := range called(t, c[0], made...) {
		want := make([]poller.Result, len(made[i]))
		c[1].Check(t.Context(), made[i], want)
		for n := range want {
			if g, w := fmt.Sprintf("%d %q", got[n].Outcome, got[n].Text), fmt.Sprintf("%d %q", want[n].Outcome, want[n].Text); g != w {
				t.Errorf("%s of %q with %+v: %s, want %s", oidOf(made[i][n].Item), made[i][n].Address, *made[i][n].Interface.SNMP, g, w)
			}
		}
	}
}

// A device that does not answer is asked as often as by Check.
func TestCall_unreachable(t *testing.T) {
	d := startDevice(t, table...)
	asks := func(ask func(c *Checker, tasks []*poller.Task)) uint64 {
		c := New(Options{Timeout: 20 * time.Millisecond})
		defer c.Close()
		var tasks []*poller.Task
		for range 3 {
			tasks = append(tasks, d.task(model.SNMPAccess{Version: "SNMPV2", Community: "wrong"}, "1.3.6.1.2.1.1.5.0"))
		}
		ask(c, tasks)
		return c.requests.Get()
	}
	got := asks(func(c *Checker, tasks []*poller.Task) {
		if r := called(t, c, tasks)[0][2]; r.Outcome != poller.Unreachable {
			t.Errorf("%d %s", r.Outcome, r.Text)
		}
	})
	want := asks(func(c *Checker, tasks []*poller.Task) { c.Check(t.Context(), tasks, make([]poller.Result, 3)) })
	if got != want {
		t.Errorf("%d requests, want %d", got, want)
	}
}

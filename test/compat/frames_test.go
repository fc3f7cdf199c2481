package compat

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"tidemark/wire/zbx"
)

// ask sends one request, compressed as agent 2 does, and returns the body of the answer.
func ask(t *testing.T, s *server, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", s.trapper)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var w zbx.FrameWriter
	if _, err := c.Write(w.AppendCompressed(nil, []byte(request))); err != nil {
		t.Fatal(err)
	}
	var r zbx.FrameReader
	h, body, err := r.Read(c)
	if err != nil {
		return ""
	}
	if !h.Compressed() {
		t.Error("the answer to a compressed request is not compressed")
	}
	return string(body)
}

// TestFrames_agentOf70 speaks as an agent of release 7.0 does: Debian has no such package.
func TestFrames_agentOf70(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	const session = "00112233445566778899aabbccddeeff"
	list := func(revision string) string {
		return ask(t, s, `{"request":"active checks","host":"agent70","version":"7.0.3","variant":2,"session":"`+session+`","config_revision":`+revision+`,"host_metadata":"linux","ip":"127.0.0.1","port":10050}`)
	}
	if got := list("0"); !strings.Contains(got, `"response":"success"`) || !strings.Contains(got, `"config_revision":`) {
		t.Fatalf("list of a new agent: %s", got)
	}
	s.importHost("agent70", item("ZABBIX_ACTIVE", "compat.seq", "UNSIGNED", "1s"))
	a, err := zbx.DecodeAnswer([]byte(list("0")))
	if err != nil {
		t.Fatal(err)
	}
	var id uint64
	for _, c := range a.Checks {
		if c.Key == "compat.seq" && c.Timeout != "" && c.Delay == "1s" {
			id = c.ItemID
		}
	}
	if id == 0 {
		t.Fatalf("the list has no compat.seq with a timeout: %+v", a)
	}
	if got := list(fmt.Sprint(a.ConfigRevision)); got != `{"response":"success"}` {
		t.Errorf("list of an agent that has the newest: %s", got)
	}
	if got := ask(t, s, `{"request":"active check heartbeat","host":"agent70","version":"7.0.3","heartbeat_freq":60}`); got != "" {
		t.Errorf("a heartbeat was answered: %s", got)
	}
	now := time.Now().Unix()
	data := func(first, last int) string {
		var rows []string
		for i := first; i <= last; i++ {
			rows = append(rows, fmt.Sprintf(`{"id":%d,"itemid":%d,"value":"%d","clock":%d,"ns":%d}`, i, id, i, now, i))
		}
		return ask(t, s, `{"request":"agent data","data":[`+strings.Join(rows, ",")+`],"session":"`+session+`","host":"agent70","version":"7.0.3","variant":2}`)
	}
	expect := func(got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("answer %s, expected %s", got, want)
		}
	}
	expect(data(1, 10), "processed: 10; failed: 0; total: 10")
	s.restart()
	expect(data(6, 15), "processed: 5; failed: 5; total: 10")
	expect(ask(t, s, `{"request":"agent data","data":[],"session":"`+session+`","host":"none70","version":"7.0.3"}`), `{"response":"success","info":"unknown host 'none70'"}`)
	got := s.values("agent70", "compat.seq")
	if len(got) != 15 {
		t.Errorf("%d values, expected 15", len(got))
	}
	checkSequence(t, got)
	if got := list(fmt.Sprint(a.ConfigRevision)); !strings.Contains(got, `"data":[`) {
		t.Errorf("after a restart the list is not sent once more: %s", got)
	}
}

package trapper

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"tidemark/model"
	"tidemark/wire/zbx"
)

// recorded returns the connections of a file: what the client sent and what the server answered.
func recorded(t *testing.T, name string) [][2][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	var all [][2][]byte
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "connection" {
			all = append(all, [2][]byte{})
			continue
		}
		side := strings.IndexByte("><", line[0])
		if side < 0 {
			continue
		}
		b, err := hex.DecodeString(line[2:])
		if err != nil {
			t.Fatal(err)
		}
		all[len(all)-1][side] = b
	}
	if len(all) == 0 {
		t.Fatal("no connections")
	}
	return all
}

// recordedItems is the configuration of the server that the sessions were recorded with.
func recordedItems() *fakeItems {
	f := &fakeItems{hosts: map[string]HostRef{"cap-agent": {ID: 1, Enabled: true}, "cap-agent2": {ID: 2, Enabled: true}}}
	for i, key := range []string{"trap.f", "trap.u", "trap.s", "trap.t"} {
		f.add(model.Item{ID: model.ItemID(i + 1), HostID: 1, Type: model.Trapper, Key: key})
	}
	active := func(host model.HostID, id model.ItemID, key, delay string, seconds int) {
		t := model.Text
		if strings.HasPrefix(key, "log[") {
			t = model.LogEntry
		}
		f.add(model.Item{ID: id, HostID: host, Type: model.ActiveAgent, ValueType: t, Key: key, Delay: delay, Interval: time.Duration(seconds) * time.Second})
	}
	active(1, 101, "agent.hostname", "10s", 10)
	active(1, 102, "system.cpu.load[all,avg1]", "5s", 5)
	active(1, 103, `log[/tmp/peers/zabbix/captures/app.log,"ERR"]`, "1s", 1)
	active(1, 105, "agent.ping", "5s", 5)
	active(1, 106, "vfs.file.size[/nonexistent]", "5s", 5)
	active(2, 500022, "system.cpu.load[all,avg1]", "5s", 5)
	active(2, 500021, "agent.ping", "5s", 5)
	active(2, 500023, "system.uptime", "5s", 5)
	return f
}

func TestRecorded_sessionsGetTheSameAnswers(t *testing.T) {
	spent := regexp.MustCompile(`seconds spent: \d+\.\d{6}`)
	body := func(name string, frame []byte) (zbx.Header, string) {
		var fr zbx.FrameReader
		h, b, err := fr.Read(bytes.NewReader(frame))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return h, spent.ReplaceAllString(string(b), "seconds spent: F")
	}
	for _, name := range []string{"zabbix_sender", "agentd_active", "agent2_active", "agentd_active_unknown_host"} {
		h := start(t, Options{Items: recordedItems()})
		for i, c := range recorded(t, name) {
			where := fmt.Sprintf("%s, connection %d", name, i+1)
			wantHeader, want := body(where, c[1])
			gotHeader, got := body(where, h.send(c[0]))
			if got != want || gotHeader.Flags != wantHeader.Flags {
				t.Errorf("%s: answer %s with flags %#x, the recorded server gave %s with %#x", where, got, gotHeader.Flags, want, wantHeader.Flags)
			}
		}
	}
}

func TestRecorded_valuesArriveAsSent(t *testing.T) {
	h := start(t, Options{Items: recordedItems()})
	for _, c := range recorded(t, "agentd_active") {
		h.send(c[0])
	}
	got := h.sink.taken()
	if len(got) < 8 || got[0] != (row{101, 1796023782_387603018, model.Raw, "cap-agent"}) || got[3] != (row{106, 1796023782_389221575, model.Unsupported, "Cannot obtain file information: [2] No such file or directory"}) {
		t.Fatalf("rows %v", got)
	}
	if l, err := model.DecodeLog([]byte(got[4].text)); err != nil || l.Text != "2026-11-30 ERR something broke" || got[4].item != 103 {
		t.Errorf("log row %v, %v", got[4], err)
	}
	if h.sink.mark("log/103") != "37 0" || h.sink.mark("session/1/e01471cc639b3d2bae9bbb97995cf405") != "9" {
		t.Errorf("marks %v", h.sink.marks)
	}
}

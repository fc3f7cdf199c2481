package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidemark/discovery/network"
	"tidemark/model"
	"tidemark/wire/proxyconfig"
	"tidemark/wire/zbx"
)

func lookAt(address string, up bool, answers int) *network.Look {
	l := &network.Look{Rule: "7", Address: netip.MustParseAddr(address), At: time.Unix(100, 0)}
	for n := range answers {
		l.Answers = append(l.Answers, network.Answer{Check: "8", Port: n + 1, Up: up, Value: "v"})
	}
	return l
}

// Finds go out in whole addresses, stay until the server has them, and make looks wait while there is no room.
func TestFinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &finds{}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, l := range []*network.Look{lookAt("10.0.0.1", true, 2), lookAt("10.0.0.2", false, 1)} {
			if err := f.Report(ctx, l); err != nil {
				t.Fatal(err)
			}
		}
		if got := f.waiting(4); len(got) != 3 || got[2] != (zbx.ProxyFind{At: 100, Rule: 7, IP: "10.0.0.1"}) || got[1].Check != 8 || got[1].Port != 2 {
			t.Errorf("%+v", got)
		}
		if got := f.waiting(2); len(got) != 2 {
			t.Errorf("an address that is too large for one request: %+v", got)
		}
		f.told(3)
		if got := f.waiting(100); len(got) != 2 || !got[0].Down || !got[1].Down || got[1].Check != 0 {
			t.Errorf("%+v", got)
		}
		f.told(2)
		if err := f.Report(ctx, lookAt("10.0.0.3", true, maxFinds)); err != nil {
			t.Error(err)
		}
		waited := make(chan error, 2)
		go func() { waited <- f.Report(ctx, lookAt("10.0.0.4", true, 1)) }()
		synctest.Wait()
		if len(waited) != 0 {
			t.Error("there is room without end")
		}
		f.told(maxFinds + 1)
		if err := <-waited; err != nil {
			t.Error(err)
		}
		f.told(2)
		if err := f.Report(ctx, lookAt("10.0.0.3", true, maxFinds)); err != nil {
			t.Error(err)
		}
		go func() { waited <- f.Report(ctx, lookAt("10.0.0.4", true, 1)) }()
		synctest.Wait()
		cancel()
		if err := <-waited; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestNetworkRules(t *testing.T) {
	var log strings.Builder
	list := []proxyconfig.Rule{
		{ID: 3, Name: "Office", Ranges: "10.0.0.1-9", Delay: "{$D}", Checks: []proxyconfig.Check{
			{ID: 5, Type: "icmp", Key: "left over"}, {ID: 6, Type: "snmp", Key: "1.3.6", Ports: "161", SNMP: &model.SNMPAccess{Version: "SNMPV2", Community: "{$C}"}},
		}},
		{ID: 4, Name: "Odd", Ranges: "10.0.0.1", Delay: "1h", Checks: []proxyconfig.Check{{ID: 7, Type: "99", Ports: "1"}}},
		{ID: 5, Name: "Never", Ranges: "10.0.0.1", Delay: "{$X}"},
	}
	got := networkRules(list, func(s string) string { return strings.ReplaceAll(s, "{$D}", "5s") }, slog.New(slog.NewTextHandler(&log, nil)))
	if len(got) != 1 || got[0].Name != "3" || got[0].Delay != "10s" || len(got[0].Checks) != 2 || got[0].Checks[1].Name != "6" || got[0].Checks[1].SNMP.Community != "{$C}" {
		t.Errorf("%+v", got)
	}
	for _, want := range []string{"Odd", "Never", `interval \"{$X}\" cannot be read`} {
		if !strings.Contains(strings.ReplaceAll(log.String(), `\\`, `\`), want) && !strings.Contains(log.String(), strings.ReplaceAll(want, `\"`, `\\\"`)) {
			t.Errorf("the log lacks %s: %s", want, log.String())
		}
	}
}

package confdb

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"tidemark/model"
)

func proxyExport(host, proxy string) []byte {
	text := "zabbix_export:\n  version: '6.0'\n  groups:\n  - name: G\n  hosts:\n  - host: " + host + "\n    name: " + host + "\n    groups:\n    - name: G\n"
	if proxy != "" {
		text += "    proxy:\n      name: " + proxy + "\n"
	}
	return []byte(text)
}

func TestProxies(t *testing.T) {
	d := open(t, t.TempDir())
	ctx := t.Context()
	report, err := d.Import(ctx, "a.yaml", proxyExport("h1", "p1"), ImportOptions{})
	if err != nil || len(report.Remarks) == 0 || !strings.Contains(report.Remarks[0].Reason, "proxy p1 was not known") {
		t.Fatalf("import: %+v, %v", report, err)
	}
	list, err := d.Proxies(ctx)
	if err != nil || len(list) != 1 || list[0].Name != "p1" || list[0].HostCount != 1 {
		t.Fatalf("proxies: %+v, %v", list, err)
	}
	p1 := list[0].ID
	p2, err := d.AddProxy(ctx, model.Proxy{Name: "p2", Description: "second", Address: "far:10051"})
	if err != nil {
		t.Fatal(err)
	}
	host := func(want model.ProxyID) model.HostID {
		t.Helper()
		var id model.HostID
		err := d.HostConfigs(ctx, []model.HostID{1}, func(c *model.HostConfig) error {
			if id = c.Host.ID; c.Host.Proxy != want {
				t.Errorf("host has proxy %d, want %d", c.Host.Proxy, want)
			}
			return nil
		})
		if err != nil || id == 0 {
			t.Fatalf("host %d: %v", id, err)
		}
		return id
	}
	id := host(p1)
	if err := d.SetHostProxy(ctx, id, "p2"); err != nil {
		t.Fatal(err)
	}
	host(p2)
	report, err = d.Import(ctx, "a.yaml", proxyExport("h1", "p2"), ImportOptions{})
	if err != nil || report.Changed() {
		t.Errorf("the same again: %+v, %v", report, err)
	}
	for _, x := range []struct {
		to, remark string
		want       model.ProxyID
	}{
		{"p1", "it was asked by proxy p2 and is asked by proxy p1 from now on", p1},
		{"", "it was asked by proxy p1 and is asked by the server from now on", 0},
		{"p2", "", p2},
	} {
		report, err := d.Import(ctx, "a.yaml", proxyExport("h1", x.to), ImportOptions{})
		said := slices.ContainsFunc(report.Remarks, func(r Remark) bool { return x.remark != "" && strings.Contains(r.Reason, x.remark) })
		if err != nil || said != (x.remark != "") {
			t.Errorf("import with proxy %q: %v, remarks %+v", x.to, err, report.Remarks)
		}
		host(x.want)
	}
	key := model.Secret("0123456789abcdef")
	if err := d.SetHostTLS(ctx, model.HostTLS{HostID: p2.Peer(), Connect: model.Unencrypted, Accept: model.PSK, Identity: "id", Key: key}, 0); err != nil {
		t.Fatal(err)
	}
	tls, err := d.HostTLS(ctx)
	if err != nil || len(tls) != 1 || tls[0].HostID != p2.Peer() || string(tls[0].Key) != string(key) {
		t.Errorf("TLS: %+v, %v", tls, err)
	}
	if err := d.RemoveProxy(ctx, "p2"); err != nil {
		t.Fatal(err)
	}
	host(0)
	if tls, err := d.HostTLS(ctx); err != nil || len(tls) != 0 {
		t.Errorf("TLS of a removed proxy: %+v, %v", tls, err)
	}
	registered, made, err := d.RegisterProxied(ctx, "p1", "new", "Linux")
	if err != nil || !made {
		t.Fatalf("register: %v, %v", made, err)
	}
	if list, err = d.Proxies(ctx); err != nil || len(list) != 1 || list[0].HostCount != 1 {
		t.Errorf("proxies with a registered host %d: %+v, %v", registered, list, err)
	}
}

func TestProxies_mistakes(t *testing.T) {
	d := open(t, t.TempDir())
	ctx := t.Context()
	f := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	_, err := d.AddProxy(ctx, model.Proxy{Name: "a/b"})
	f("name", err, ErrInvalid)
	_, err = d.AddProxy(ctx, model.Proxy{Name: "a", Address: "far"})
	f("address", err, ErrInvalid)
	f("remove", d.RemoveProxy(ctx, "p9"), ErrNotFound)
	f("assign", d.SetHostProxy(ctx, 1, "p9"), ErrNotFound)
	f("assign host", d.SetHostProxy(ctx, 99, ""), ErrNotFound)
	f("TLS", d.SetHostTLS(ctx, model.HostTLS{HostID: model.ProxyID(9).Peer(), Connect: 1, Accept: 1}, 0), ErrNotFound)
}

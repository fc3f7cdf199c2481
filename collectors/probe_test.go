package collectors

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/discovery/network"
)

// What answers in the words of HTTP is no agent, however old; an agent that answers without a header is one.
func TestProber_agent(t *testing.T) {
	set, err := Open(Options{SSLFolder: t.TempDir(), Metrics: metrics.NewSet()})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	prober := set.Prober(&Options{}, nil)
	for answer, want := range map[string]bool{"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n": false, "Linux web1": true} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 512))
				_, _ = c.Write([]byte(answer))
				_ = c.Close()
			}
		}()
		at := ln.Addr().(*net.TCPAddr)
		value, up, err := prober.Probe(t.Context(), network.Probe{
			Address: netip.MustParseAddr("127.0.0.1"), Check: &network.Check{Type: "agent", Key: "system.uname"}, Port: at.Port, Timeout: 30 * time.Second,
		})
		if err != nil || up != want || up && value != answer {
			t.Errorf("%q: %q, %t, %v", answer, value, up, err)
		}
		_ = ln.Close()
	}
}

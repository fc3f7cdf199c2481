package cli

import (
	"testing"

	"tidemark/model"
)

func TestServiceCell(t *testing.T) {
	for want, s := range map[string]model.NetService{
		"icmp 127.0.0.1":    {Check: "icmp", IP: "127.0.0.1"},
		"tcp 127.0.0.1:443": {Check: "tcp", IP: "127.0.0.1", Port: 443},
	} {
		if got := serviceCell(&s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

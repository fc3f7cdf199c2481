package zabbixdb

import (
	"net"
	"strings"
	"testing"
	"time"
)

// TestSource_answers gives up on a server that takes connections and says nothing.
func TestSource_answers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, scheme := range []string{"postgres", "mysql"} {
		s := &Source{}
		if err := s.connect(scheme + "://u:p@" + l.Addr().String() + "/zabbix"); err != nil {
			t.Fatal(err)
		}
		if err := s.answers(t.Context(), 100*time.Millisecond); err == nil || !strings.Contains(err.Error(), "no answer within 100ms") {
			t.Errorf("%s: %v", scheme, err)
		}
		if err := s.db.Close(); err != nil {
			t.Error(err)
		}
	}
}

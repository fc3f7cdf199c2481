package icmp

import (
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/internal/guard"
)

func TestPing(t *testing.T) {
	p := New(Options{Rules: guard.New(guard.Options{Denied: []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16")}})})
	defer p.Close()
	f := func(key, want string) {
		t.Helper()
		if got, err := p.Ping(t.Context(), key, "127.0.0.1"); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", key, got, err, want)
		}
	}
	f("icmpping[,3,20,,10000]", "1")
	f("icmpping[localhost,1,20,1000,10000]", "1")
	f("icmppingloss[127.0.0.1,5,20,,10000]", "0.000000")
	var all sync.WaitGroup
	for _, mode := range []string{"min", "avg", "max"} {
		all.Go(func() {
			got, err := p.Ping(t.Context(), "icmppingsec[127.0.0.1,3,20,,10000,"+mode+"]", "")
			if n, parseErr := strconv.ParseFloat(got, 64); err != nil || parseErr != nil || n <= 0 {
				t.Errorf("%s: %q, %v", mode, got, err)
			}
		})
	}
	all.Wait()
	if _, err := p.Ping(t.Context(), "icmpping[169.254.1.1]", ""); err == nil || !strings.Contains(err.Error(), "must not reach") {
		t.Errorf("a denied address: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := p.Ping(t.Context(), "icmpping", "127.0.0.1"); err == nil {
		t.Error("a closed pinger pings")
	}
}

func TestValue(t *testing.T) {
	f := func(name, mode, want string, times ...time.Duration) {
		t.Helper()
		if got := (&query{name: name, mode: mode, count: 4}).value(times); got != want {
			t.Errorf("%s %s %v: %s, want %s", name, mode, times, got, want)
		}
	}
	f("icmpping", "", "0")
	f("icmpping", "", "1", time.Second)
	f("icmppingloss", "", "100.000000")
	f("icmppingloss", "", "25.000000", 1, 2, 3)
	f("icmppingsec", "avg", "0")
	f("icmppingsec", "avg", "0.002000", time.Millisecond, 3*time.Millisecond)
	f("icmppingsec", "min", "0.001000", time.Millisecond, 3*time.Millisecond)
	f("icmppingsec", "max", "0.003000", time.Millisecond, 3*time.Millisecond)
	f("icmppingsec", "avg", "0.000001", 1)
}

func TestParse(t *testing.T) {
	q, err := parse("icmppingsec[h,4,100,64,200,max]", "")
	if want := (query{"icmppingsec", "h", 4, 64, 100 * time.Millisecond, 200 * time.Millisecond, "max"}); err != nil || *q != want {
		t.Errorf("%+v, %v, want %+v", q, err, want)
	}
	for key, want := range map[string]string{
		"icmpping": "no target", "icmpping[h,0]": "number of packets", "icmpping[h,,19]": "interval", "icmpping[h,,,23]": "size is", "icmpping[h,,,,49]": "timeout",
		"icmppingsec[h,,,,,mid]": "mode is", "icmpping[h,10000,1000]": "add up", "icmppings[h]": "is not known", "icmpping[h,,,,,,,x]": "8 parameters",
	} {
		if _, err := parse(key, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", key, err, want)
		}
	}
}

// TestTake shows packets that nobody asked for.
func TestTake(t *testing.T) {
	p := New(Options{})
	s, err := p.open(false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.conn.Close(); <-s.done }()
	for _, packet := range []string{"", "\x00", "\x00\x00\x00\x00\x00\x00\x00\x00", "\x00\x00\x00\x00\x00\x00\xff\xff" + strings.Repeat("x", 30), "\x08\x00\x00\x00\x00\x00\x00\x00" + strings.Repeat("x", 30)} {
		s.take([]byte(packet), nil, time.Now())
	}
}

func FuzzTake(f *testing.F) {
	s := &socket{pinger: New(Options{}), waiting: map[uint64]*waiter{0x7878787878787878: {answers: make(chan time.Duration, 1), seen: make([]bool, 1), sent: make([]time.Time, 1)}}}
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00" + strings.Repeat("x", 30)))
	f.Fuzz(func(t *testing.T, packet []byte) {
		s.waiting[0x7878787878787878].seen[0] = true
		s.take(packet, nil, time.Now())
	})
}

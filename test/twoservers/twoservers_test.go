package twoservers

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// takeOverTime is how long nothing may be acknowledged when the server that works is gone.
const takeOverTime = 30 * time.Second

// sender sends rising numbers to all counters, the same again until they are acknowledged.
type sender struct {
	first  int
	mu     sync.Mutex
	acked  int
	ackAt  time.Time
	silent time.Duration // the longest time without an acknowledgement
}

// base is the time of number zero. Senders have odd and even nanoseconds, so that their numbers do not meet.
func (s *sender) run(ctx context.Context, p *pair, base int64) {
	s.ackAt = time.Now()
	for n := 1; ctx.Err() == nil; n++ {
		rows := make([]string, counters)
		for i := range rows {
			rows[i] = fmt.Sprintf(`{"host":"example","key":"counter[%d]","value":"%d","clock":%d,"ns":%d}`, i, n, base+int64(n/1000), n%1000*1000+s.first)
		}
		if !p.send(ctx, s.first, `{"request":"sender data","data":[`+strings.Join(rows, ",")+`]}`, counters) {
			return
		}
		s.mu.Lock()
		s.acked = n
		s.silent = max(s.silent, time.Since(s.ackAt))
		s.ackAt = time.Now()
		s.mu.Unlock()
	}
}

// since is how long after a moment the next value was acknowledged; false if none was yet.
func (s *sender) since(at time.Time) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ackAt.Sub(at), s.ackAt.After(at.Add(100 * time.Millisecond))
}

// TestTakeOver kills, stops and cuts off the server that works, kills the database, and asks for a handover, while values come to both servers.
func TestTakeOver(t *testing.T) {
	p := newPair(t)
	base := time.Now().Add(-time.Hour).Unix()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	senders := []*sender{{first: 0}, {first: 1}}
	var sending sync.WaitGroup
	for _, s := range senders {
		sending.Go(func() { s.run(ctx, p, base) })
	}
	for range 3 {
		p.raise()
	}
	epochs := int64(0)
	for range count(t, "TIDEMARK_KILLS", 5) {
		epochs++
		p.disturb("killed", senders, func(works *node) func() {
			works.kill()
			return works.start
		})
	}
	epochs++
	p.disturb("stopped", senders, func(works *node) func() {
		works.signal(syscall.SIGSTOP)
		return func() {
			works.signal(syscall.SIGCONT)
			until(t, "the stopped server has noticed", func() bool { return works.lease().Role == "waiting" })
		}
	})
	epochs++
	p.disturb("cut off", senders, func(works *node) func() {
		works.wire.cut.Store(true)
		return func() {
			until(t, "the server that is cut off has stopped working", func() bool { return works.lease().Role != "working" })
			works.wire.cut.Store(false)
			until(t, "the server waits", func() bool { return works.lease().Role == "waiting" })
		}
	})
	for range count(t, "TIDEMARK_DATABASE_KILLS", 2) {
		p.raise()
		if err := p.cluster.Kill(); err != nil {
			t.Fatal(err)
		}
		for _, n := range p.nodes {
			until(t, "no server says that it takes values", func() bool { return n.ready() == http.StatusServiceUnavailable })
		}
		<-time.After(time.Duration(rand.IntN(3000)) * time.Millisecond)
		if err := p.cluster.Restart(); err != nil {
			t.Fatal(err)
		}
		p.raise()
	}
	works, _ := p.working()
	before := works.lease().Epoch
	if before < 1+epochs {
		t.Errorf("epoch %d, expected at least %d", before, 1+epochs)
	}
	out, err := exec.Command(program, "store", "handover", "--http", works.http).CombinedOutput()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf("works with epoch %d", before+1)) {
		t.Errorf("handover: %v\n%s", err, out)
	}
	p.raise()
	stop()
	sending.Wait()
	p.check(senders, base)
	p.checkAlerts()
}

// disturb does something to the server that works, waits until the other one has taken over, and puts it right again.
func (p *pair) disturb(what string, senders []*sender, do func(works *node) (undo func())) {
	p.t.Helper()
	works, waits := p.working()
	until(p.t, "the other server waits", func() bool { return waits.lease().Role == "waiting" })
	p.raise()
	<-time.After(time.Duration(rand.IntN(1500)) * time.Millisecond)
	at := time.Now()
	undo := do(works)
	p.raise()
	took := time.Duration(0)
	for _, s := range senders {
		until(p.t, "senders are served again", func() bool {
			d, ok := s.since(at)
			took = max(took, d)
			return ok
		})
	}
	if !waits.works() {
		p.t.Errorf("%s: values are acknowledged, and the other server does not work", what)
	}
	p.t.Logf("%s: the other server acknowledged after %v", what, took.Round(100*time.Millisecond))
	if took > takeOverTime {
		p.t.Errorf("%s: the takeover took %v, expected at most %v", what, took, takeOverTime)
	}
	undo()
	p.raise()
}

// check looks for each number that was acknowledged: it is there once, and nothing but what was sent.
func (p *pair) check(senders []*sender, base int64) {
	p.t.Helper()
	conn, err := pgx.Connect(p.t.Context(), p.cluster.DSN("postgres"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close(p.t.Context())
	for _, s := range senders {
		if s.acked == 0 {
			p.t.Fatal("nothing was acknowledged")
		}
		// The last number may be stored without its acknowledgement.
		rows, err := conn.Query(p.t.Context(), `SELECT itemid, count(*), count(DISTINCT value), min(value)::bigint, max(value)::bigint,
			count(*) FILTER (WHERE clock <> $2 + (value::bigint / 1000) OR ns <> value::bigint % 1000 * 1000 + $1)
			FROM history_uint WHERE clock < $3 AND ns % 2 = $1 GROUP BY itemid`, s.first, base, time.Now().Add(-30*time.Minute).Unix())
		if err != nil {
			p.t.Fatal(err)
		}
		items := 0
		var id, all, distinct, low, high, misplaced int64
		if _, err := pgx.ForEachRow(rows, []any{&id, &all, &distinct, &low, &high, &misplaced}, func() error {
			items++
			if all != distinct || low != 1 || high != all || all < int64(s.acked) || all > int64(s.acked)+1 || misplaced != 0 {
				p.t.Errorf("item %d has %d values, %d different ones, %d to %d, %d at another time; %d were acknowledged", id, all, distinct, low, high, misplaced, s.acked)
			}
			return nil
		}); err != nil {
			p.t.Fatal(err)
		}
		if items != counters {
			p.t.Errorf("%d items have values, expected %d", items, counters)
		}
		p.t.Logf("sender %d: %d values acknowledged, at most %v without an acknowledgement", s.first, s.acked*counters, s.silent.Round(100*time.Millisecond))
	}
}

// checkAlerts looks for each problem: it is there once, and it was told once. One whose sender was killed while it sent may be missing at the desk; then the
// list of alerts says so.
func (p *pair) checkAlerts() {
	p.t.Helper()
	works, _ := p.working()
	failed := map[string]string{}
	until(p.t, "all alerts are sent", func() bool {
		var list struct {
			Alerts []struct{ State, Subject, Error, Kind string }
			Next   string
		}
		waiting := false
		clear(failed)
		seen := 0
		for next := ""; ; next = list.Next {
			list.Next = ""
			works.call("GET", "/api/alerts?limit=100&cursor="+next, "", "", &list)
			for _, a := range list.Alerts {
				seen++
				waiting = waiting || a.State == "waiting"
				if a.State == "failed" {
					failed[a.Subject] = a.Error
				}
			}
			if list.Next == "" {
				return !waiting && seen >= len(p.raised)
			}
		}
	})
	for _, name := range p.raised {
		told, why := p.desk.told(name), failed[name]
		switch {
		case told > 1:
			p.t.Errorf("%s was told %d times", name, told)
		case told == 0 && !strings.Contains(why, "may have arrived"):
			p.t.Errorf("%s was not told: %q", name, why)
		}
	}
	p.t.Logf("%d problems, %d alerts of which it is unknown whether they arrived", len(p.raised), len(failed))
	var text json.RawMessage
	works.call("GET", "/api/problems?limit=1000", "", "", &text)
	for _, name := range p.raised {
		if n := strings.Count(string(text), `"name":"`+name+`"`); n != 1 {
			p.t.Errorf("%d problems %q, expected one", n, name)
		}
	}
}

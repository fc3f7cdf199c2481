package network

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidemark/model"
)

// failing is a store that does not take anything for a while.
type failing struct {
	*world
	err error
}

func (f *failing) RecordNetHost(ctx context.Context, h *model.NetHost) (int64, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.world.RecordNetHost(ctx, h)
}

// What a proxy found becomes the same events as what the server finds itself; what does not fit the rule is passed over, and what cannot be
// stored is to come again.
func TestScanner_Take(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{stored: make(map[string]model.NetHost)}
		store := &failing{world: w}
		s := New(Options{Prober: w, Store: store, Handler: w})
		rule := Rule{Name: "r", Proxy: "branch", Ranges: "10.0.0.1-3", Checks: []Check{{Type: "ssh"}, {Type: "agent", Key: "system.uname", Name: "uname"}}, HostName: "dns"}
		if err := s.Apply([]Rule{rule}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { _ = s.Run(ctx) })
		defer done.Wait()
		defer cancel()
		take := func(proxy, address string, answers ...Answer) error {
			return s.Take(ctx, proxy, &Look{Rule: "r", Address: netip.MustParseAddr(address), DNS: "far", At: time.Now(), Answers: answers})
		}
		f := func(want ...string) {
			t.Helper()
			slices.Sort(want)
			if got := w.take(); !slices.Equal(got, want) {
				t.Errorf("events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		store.err = errors.New("full")
		up := []Answer{{Check: "ssh", Port: 22, Up: true}, {Check: "uname", Port: 10050}, {Check: "gone", Port: 1, Up: true}, {Check: "ssh", Port: 23, Up: true}}
		if err := take("branch", "10.0.0.2", up...); !errors.Is(err, store.err) {
			t.Errorf("a store that is full: %v", err)
		}
		store.err = nil
		w.take()
		if err := take("branch", "10.0.0.2", up...); err != nil {
			t.Error(err)
		}
		f("10.0.0.2 10.0.0.2 service ssh discovered", "10.0.0.2 10.0.0.2 service ssh up", "10.0.0.2 10.0.0.2 host discovered", "10.0.0.2 10.0.0.2 host up")
		if name := w.names[len(w.names)-1]; name != "far/10.0.0.2" || w.questions() != 0 {
			t.Errorf("named %s, %d questions by the server", name, w.questions())
		}
		if err := errors.Join(take("other", "10.0.0.2", up...), take("branch", "10.0.0.9", up...), take("branch", "10.0.0.1", Answer{Check: "ssh", Port: 22})); err != nil {
			t.Error(err)
		}
		f()
		time.Sleep(time.Hour)
		if err := take("branch", "10.0.0.2", Answer{Check: "ssh", Port: 22}); err != nil {
			t.Error(err)
		}
		f("10.0.0.2 10.0.0.2 service ssh lost", "10.0.0.2 10.0.0.2 service ssh down", "10.0.0.2 10.0.0.2 host lost", "10.0.0.2 10.0.0.2 host down")
		if err := s.ScanNow("r"); !errors.Is(err, ErrByProxy) {
			t.Errorf("look now: %v", err)
		}
		if st := s.Status()[0]; st.Hosts != 1 || st.Up != 0 || st.Proxy != "branch" || st.LastAt != time.Now().Unix() || st.Error != "" {
			t.Errorf("%+v", st)
		}
		time.Sleep(32 * 24 * time.Hour)
		if st := s.Status()[0]; st.Hosts != 0 {
			t.Errorf("what is down is remembered forever: %+v", st)
		}
	})
}

// reports are what a proxy tells.
type reports struct {
	mu   sync.Mutex
	list []Look
}

func (r *reports) Report(_ context.Context, l *Look) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, *l)
	return nil
}

// A proxy tells of all addresses with each look, and looks the names of those up that answered.
func TestScanner_report(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := &world{up: map[string]string{"10.0.0.2 agent 10050": "Linux"}}, &reports{}
		s := New(Options{Prober: w, Reporter: r})
		if err := s.Apply([]Rule{{Name: "1", Ranges: "10.0.0.1-2", Delay: "1h", AtOnce: 1, Checks: []Check{{Name: "5", Type: "icmp"}, {Name: "6", Type: "agent", Key: "system.uname"}}}}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { _ = s.Run(ctx) })
		time.Sleep(90 * time.Minute)
		cancel()
		done.Wait()
		if len(r.list) != 4 || r.list[0].Up() || r.list[0].DNS != "" || len(r.list[0].Answers) != 2 {
			t.Fatalf("%+v", r.list)
		}
		if l := r.list[3]; l.Rule != "1" || l.DNS != "name-of-10.0.0.2" || l.Answers[1] != (Answer{Check: "6", Port: 10050, Up: true, Value: "Linux"}) || l.Answers[0].Port != 0 {
			t.Errorf("%+v", l)
		}
	})
}

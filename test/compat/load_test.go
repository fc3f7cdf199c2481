package compat

import (
	"math"
	"testing"
	"time"

	"tidemark/load"
)

// TestLoad_everyAnsweredValueSurvivesKills sends with the load generator, kills the server in the middle and at the
// end, and compares what is stored with what the generator's schedules say.
func TestLoad_everyAnsweredValueSurvivesKills(t *testing.T) {
	for _, p := range []load.Protocol{load.Sender, load.Agent} {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			o, err := load.Options{
				Server: s.trapper, HTTP: s.http, Hosts: 4, Items: 10, NVPS: 2000, Seconds: 6, Protocol: p, Triggers: 0.6,
			}.Check()
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := load.Provision(t.Context(), o, nil); err != nil {
					t.Fatal(err)
				}
			}
			o.Start = time.Now()
			reports := make(chan load.Report, 1)
			go func() {
				r, err := load.Run(t.Context(), o, nil)
				if err != nil {
					t.Error(err)
				}
				reports <- r
			}()
			for range 2 {
				<-time.After(1700 * time.Millisecond)
				s.restart()
			}
			r := <-reports
			s.restart()
			if r.Processed != r.Sent || r.Failed != 0 {
				t.Errorf("report %+v, expected everything processed", r)
			}
			var total uint64
			for h := range o.Hosts {
				total += compareHost(t, s, &o, h)
			}
			if r.Sent != total {
				t.Errorf("%d values sent, %d stored", r.Sent, total)
			}
		})
	}
}

// compareHost compares the stored values of a host of the load with its schedule and walks.
func compareHost(t *testing.T, s *server, o *load.Options, h int) uint64 {
	t.Helper()
	want := make([][]value, o.Items)
	walks := make([]load.Walk, o.Items)
	for i := range walks {
		walks[i] = load.NewWalk(h, i)
	}
	end := o.Start.Add(time.Duration(o.Seconds * float64(time.Second))).UnixNano()
	due := load.NewSchedule(o, h).Take(nil, end, math.MaxInt)
	for _, d := range due {
		want[d.Item] = append(want[d.Item], value{d.At, number(load.AppendValue(nil, walks[d.Item].Next()))})
	}
	for i := range want {
		compareValues(t, load.HostName(h)+" "+load.ItemKey(i), s.values(load.HostName(h), load.ItemKey(i)), want[i])
	}
	return uint64(len(due))
}

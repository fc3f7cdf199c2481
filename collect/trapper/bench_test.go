package trapper

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"tidemark/model"
	"tidemark/wire/zbx"
)

// mapItems is a configuration whose lookups cost what maps cost.
type mapItems struct {
	host  map[string]HostRef
	byID  map[model.ItemID]ItemRef
	byKey map[string]ItemRef
}

func (m *mapItems) Host(name []byte) (HostRef, bool) {
	h, ok := m.host[string(name)]
	return h, ok
}

func (m *mapItems) ItemByKey(_ model.HostID, key []byte) (ItemRef, bool) {
	i, ok := m.byKey[string(key)]
	return i, ok
}

func (m *mapItems) ItemByID(id model.ItemID) (ItemRef, bool) {
	i, ok := m.byID[id]
	return i, ok
}

func (m *mapItems) ActiveChecks(model.HostID) ([]*model.Item, uint64) { return nil, 1 }

// discard is a sink for which everything is durable at once.
type discard struct{}

func (discard) Put(_ context.Context, b *model.Batch) error {
	b.Finish(nil)
	b.Free()
	return nil
}

// BenchmarkData is the way of a request from its body to its answer, without the socket.
func BenchmarkData(b *testing.B) {
	const rowCount = 1000
	items := &mapItems{map[string]HostRef{"load-0001": {ID: 1, Enabled: true}}, map[model.ItemID]ItemRef{}, map[string]ItemRef{}}
	for i := range rowCount {
		ref := ItemRef{ID: model.ItemID(i + 1), HostID: 1, Type: model.ActiveAgent, Enabled: true}
		items.byID[ref.ID] = ref
		ref.Type = model.Trapper
		items.byKey[fmt.Sprintf("load.item[%d]", i)] = ref
	}
	for _, name := range []string{zbx.AgentData, zbx.SenderData} {
		b.Run(name, func(b *testing.B) {
			s := New(Options{Sink: discard{}, Items: items})
			d := zbx.DataRequest{Name: name, Version: "6.0"}
			row := zbx.Row{Has: zbx.HasItemID | zbx.HasValue | zbx.HasClock | zbx.HasNS, Clock: 1796023786}
			if name == zbx.SenderData {
				row.Has ^= zbx.HasItemID | zbx.HasHost | zbx.HasKey
				row.Host = []byte("load-0001")
			} else {
				d.Host = "load-0001"
			}
			body := d.Begin(nil)
			for i := range rowCount {
				row.ItemID, row.NS = uint64(i+1), uint32(i)
				row.Key = fmt.Appendf(nil, "load.item[%d]", i)
				row.Value = fmt.Appendf(nil, "%d.%02d", i, i%100)
				body = d.Add(body, &row)
			}
			body = d.End(body)
			work := make([]byte, len(body))
			w := newWorker(s)
			c := &conn{}
			b.ReportAllocs()
			cpu := cpuSeconds()
			for b.Loop() {
				copy(work, body)
				w.answer = w.answer[:0]
				s.serve(b.Context(), c, w, work)
			}
			if a, err := zbx.DecodeAnswer(w.answer); err != nil || a.Counts.Processed != rowCount {
				b.Fatalf("answer %s, %v", w.answer, err)
			}
			b.ReportMetric(float64(b.N)*rowCount/(cpuSeconds()-cpu), "values/cpu-s")
		})
	}
}

// cpuSeconds is the processor time of this process so far: unlike the wall clock it does not count what others take.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

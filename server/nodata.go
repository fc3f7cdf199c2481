package server

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"tidemark/model"
)

// noDataEvery is how often maintenances are looked at: they begin and end at full minutes.
const noDataEvery = time.Second

// noData knows the hosts in a maintenance without data: nobody asks them, and values that come from them all the same are dropped.
type noData struct {
	hosts atomic.Pointer[map[model.HostID]int64]
}

// Hosts implements the question of preproc: since when (Unix nanoseconds) values of hosts are not wanted. It is nil most of the time.
func (n *noData) Hosts() map[model.HostID]int64 {
	if m := n.hosts.Load(); m != nil {
		return *m
	}
	return nil
}

func (n *noData) has(id model.HostID) bool {
	_, ok := n.Hosts()[id]
	return ok
}

// watchNoData looks at maintenances until ctx ends.
func (s *Server) watchNoData(ctx context.Context) error {
	ticker := time.NewTicker(noDataEvery)
	defer ticker.Stop()
	for {
		s.refreshNoData(time.Now().UnixNano())
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// refreshNoData finds the hosts that are in a maintenance without data now, and has the poller stop or begin to ask those that changed.
func (s *Server) refreshNoData(now int64) {
	before := s.noData.Hosts()
	if !s.alerter.HasNoData() && len(before) == 0 {
		return
	}
	snapshot := s.cache.Snapshot()
	after := make(map[model.HostID]int64)
	var changed []model.HostID
	for h := range snapshot.Hosts() {
		if !s.alerter.NoData(h) {
			continue
		}
		since, known := before[h.ID]
		if !known {
			since = now
			changed = append(changed, h.ID)
		}
		after[h.ID] = since
	}
	for id := range before {
		if _, ok := after[id]; !ok {
			changed = append(changed, id)
		}
	}
	if len(changed) == 0 && maps.Equal(before, after) {
		return
	}
	s.noData.hosts.Store(&after)
	slices.Sort(changed)
	for _, id := range changed {
		s.polling.again(id)
	}
	s.logger.Info("hosts in maintenance without data", "count", len(after), "changed", len(changed))
}

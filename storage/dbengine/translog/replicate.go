package translog

import "tidemark/model"

// replication is what completions wait for besides the disk. It is guarded by the log's lock.
type replication struct {
	// synchronous says that reached is looked at: how far a standby has the log.
	synchronous bool
	reached     model.LSN
	// refusal, if not nil, is why nothing is taken or acknowledged.
	refusal error
}

// bound lowers how far completions may be finished to what a standby has.
func (r *replication) bound(lsn model.LSN) model.LSN {
	if r.synchronous {
		return min(lsn, r.reached)
	}
	return lsn
}

// Synchronous makes completions wait until Replicated has passed them.
func (l *Log) Synchronous() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replication.synchronous = true
}

// Replicated says that a standby has everything up to lsn on its disk.
func (l *Log) Replicated(lsn model.LSN) {
	l.mu.Lock()
	l.replication.reached = max(l.replication.reached, lsn)
	l.mu.Unlock()
	l.poke()
}

// Refuse finishes what waits with err and lets nothing more in, until it is called with nil. What was added before stays in the log.
func (l *Log) Refuse(err error) {
	l.mu.Lock()
	l.replication.refusal = err
	l.announce()
	l.mu.Unlock()
	l.poke()
}

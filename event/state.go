package event

import "tidemark/model"

// State returns the state of a trigger; false when it has none yet.
func (l *Log) State(id model.TriggerID) (model.TriggerState, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.states[id]
	return s, ok
}

package trapper

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"tidemark/model"
)

// sessionTokenBytes is the length of every session token that agents make.
const sessionTokenBytes = 32

const sessionMark = "session/"

// errSessionBusy means that requests hold sessions crosswise; the peer tries again.
var errSessionBusy = errors.New("session is in use by another request")

type sessionKey struct {
	host  model.HostID
	token string
}

// session is what is known of one run of one agent. Its lock is held from the moment when ids are compared until the
// values are durable, so that of two requests with the same values, as a retry makes them, the second sees what
// became of the first.
type session struct {
	key  sessionKey
	lock chan struct{}
	// lastID is the newest id that is durable; guarded by lock.
	lastID uint64

	// The rest is guarded by sessions.mu.
	holders int
	usedAt  int64
	// revision is that of the list which the agent has been sent; zero for none.
	revision uint64
}

// sessions are the sessions of all hosts, bounded in number.
type sessions struct {
	limit int
	mu    sync.Mutex
	byKey map[sessionKey]*session
}

func newSessions(limit int) *sessions {
	return &sessions{limit: limit, byKey: make(map[sessionKey]*session)}
}

// seed takes a session of an earlier run and reports whether the mark was one.
func (ss *sessions) seed(m model.Mark) bool {
	rest, ok := strings.CutPrefix(m.Key, sessionMark)
	if !ok {
		return false
	}
	host, token, _ := strings.Cut(rest, "/")
	id, err := strconv.ParseUint(host, 10, 64)
	last, err2 := strconv.ParseUint(m.Value, 10, 64)
	if err != nil || err2 != nil || len(token) != sessionTokenBytes {
		return true
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s := ss.get(model.HostID(id), []byte(token), m.At); s.lastID < last {
		s.lastID = last
	}
	return true
}

// get returns a session, made if needed. The caller holds mu.
func (ss *sessions) get(host model.HostID, token []byte, now int64) *session {
	s := ss.byKey[sessionKey{host, string(token)}]
	if s == nil {
		if len(ss.byKey) >= ss.limit {
			ss.forget()
		}
		s = &session{key: sessionKey{host, string(token)}, lock: make(chan struct{}, 1)}
		ss.byKey[s.key] = s
	}
	s.usedAt = max(s.usedAt, now)
	return s
}

// forget drops the tenth of the sessions that has been unused for longest. Sessions in use stay.
func (ss *sessions) forget() {
	idle := make([]*session, 0, len(ss.byKey))
	for _, s := range ss.byKey {
		if s.holders == 0 {
			idle = append(idle, s)
		}
	}
	slices.SortFunc(idle, func(a, b *session) int { return int(min(1, max(-1, a.usedAt-b.usedAt))) })
	for _, s := range idle[:min(len(idle), ss.limit/10+1)] {
		delete(ss.byKey, s.key)
	}
}

// hold returns a session with its lock taken. With wait it waits for the lock until ctx ends; without, a lock that is
// taken is errSessionBusy.
func (ss *sessions) hold(ctx context.Context, host model.HostID, token []byte, now int64, wait bool) (*session, error) {
	ss.mu.Lock()
	s := ss.get(host, token, now)
	s.holders++
	ss.mu.Unlock()
	select {
	case s.lock <- struct{}{}:
		return s, nil
	default:
	}
	err := errSessionBusy
	if wait {
		select {
		case s.lock <- struct{}{}:
			return s, nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	ss.mu.Lock()
	s.holders--
	ss.mu.Unlock()
	return nil, err
}

// release gives back what hold returned.
func (ss *sessions) release(s *session) {
	<-s.lock
	ss.mu.Lock()
	s.holders--
	ss.mu.Unlock()
}

// revision returns the revision of the list that a session's agent was sent, zero for none.
func (ss *sessions) revision(host model.HostID, token []byte) uint64 {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s := ss.byKey[sessionKey{host, string(token)}]; s != nil {
		return s.revision
	}
	return 0
}

// setRevision remembers the revision of the list that a session's agent was sent.
func (ss *sessions) setRevision(host model.HostID, token []byte, revision uint64, now int64) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.get(host, token, now).revision = revision
}

func (ss *sessions) count() int {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return len(ss.byKey)
}

// mark returns the mark that makes id the session's last one.
func (s *session) mark(id uint64, now int64) model.Mark {
	key := sessionMark + strconv.FormatUint(uint64(s.key.host), 10) + "/" + s.key.token
	return model.Mark{Key: key, Value: strconv.FormatUint(id, 10), At: now}
}

package standby

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"tidemark/api"
)

// kicked is closed when somebody waits for the configuration to be copied.
func (s *Source) kicked() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kick
}

// unkick makes the next waiting ask again.
func (s *Source) unkick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.kick:
		s.kick = make(chan struct{})
	default:
	}
}

// hasVersion notes that a standby has the configuration of a version.
func (s *Source) hasVersion(standby string, version uint64) {
	s.looking.Lock()
	rows := s.pages.Rows()
	current := version != 0 && version == s.pages.Version()
	s.looking.Unlock()
	if !current {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.followers[standby]; f != nil && rows > f.rows {
		f.rows = rows
		close(s.acknowledged)
		s.acknowledged = make(chan struct{})
	}
}

// Confirmed waits, in synchronous mode, until a standby has the configuration as it is now.
func (s *Source) Confirmed(ctx context.Context) error {
	if !s.o.Synchronous {
		return nil
	}
	rows, err := s.o.DB.ChangedRows(ctx)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, s.o.Alone)
	defer cancel()
	for {
		acknowledged, has := s.confirmed(rows)
		if has {
			return nil
		}
		select {
		case <-acknowledged:
		case <-waiting.Done():
			return &api.Error{Status: http.StatusServiceUnavailable, Code: "standby", Message: fmt.Sprintf(
				"standby.synchronous is on and no standby confirmed the change within %v: it is stored here, and would be lost with this server", s.o.Alone)}
		}
	}
}

// confirmed reports whether a standby that lives has so many changes; otherwise it asks for a copy and gives what tells of news.
func (s *Source) confirmed(rows int64) (news <-chan struct{}, has bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	living := 0
	has = true
	for _, f := range s.followers {
		if !f.seeding && time.Since(f.seenAt) < s.o.Alone+maxWait {
			living++
			has = has && f.rows >= rows
		}
	}
	if living > 0 && has {
		return nil, true
	}
	select {
	case <-s.kick:
	default:
		close(s.kick)
	}
	return s.acknowledged, false
}

// Alone says why values are refused for want of a standby; empty when they are not.
func (s *Source) Alone() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alone {
		return s.errAlone().Error()
	}
	return ""
}

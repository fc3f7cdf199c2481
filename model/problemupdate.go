package model

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Forever is the end of what has none: the SuppressedUntil of a problem that is suppressed until somebody ends it.
const Forever = math.MaxInt64

// ProblemActions are the things that somebody does to a problem at once. The bits are those of Zabbix's event.acknowledge.
type ProblemActions uint16

// The actions.
const (
	ActionClose ProblemActions = 1 << iota
	ActionAcknowledge
	ActionMessage
	ActionSeverity
	ActionUnacknowledge
	ActionSuppress
	ActionUnsuppress
)

// Has reports whether an action is among them.
func (a ProblemActions) Has(one ProblemActions) bool { return a&one != 0 }

// ProblemUpdate is what somebody did to a problem. Of a stored one Actions are what changed something.
type ProblemUpdate struct {
	// At is when, Unix nanoseconds.
	At int64
	// User is zero for who has no account; Author is the name at that time.
	User    UserID
	Author  string
	Actions ProblemActions
	Message string
	// OldSeverity and Severity are before and after, with ActionSeverity.
	OldSeverity, Severity Severity
	// SuppressedUntil is the end, Unix nanoseconds or Forever, with ActionSuppress.
	SuppressedUntil int64
}

// StoredUpdate is an update of one problem together with how the problem is after it.
type StoredUpdate struct {
	ProblemUpdate
	Problem Problem
	// WasSuppressedUntil is the problem's before it.
	WasSuppressedUntil int64
}

// Words tells what was done, as in "acknowledged, commented and closed". Times are in the zone.
func (u *ProblemUpdate) Words(zone *time.Location) string {
	var done []string
	for _, one := range []struct {
		action ProblemActions
		words  string
	}{
		{ActionAcknowledge, "acknowledged"},
		{ActionUnacknowledge, "unacknowledged"},
		{ActionMessage, "commented"},
		{ActionSeverity, fmt.Sprintf("changed severity from %s to %s", u.OldSeverity, u.Severity)},
		{ActionSuppress, "suppressed " + untilWords(u.SuppressedUntil, zone)},
		{ActionUnsuppress, "unsuppressed"},
		{ActionClose, "closed"},
	} {
		if u.Actions.Has(one.action) {
			done = append(done, one.words)
		}
	}
	if last := len(done) - 1; last > 0 {
		return strings.Join(done[:last], ", ") + " and " + done[last]
	}
	return strings.Join(done, "")
}

func untilWords(at int64, zone *time.Location) string {
	if at == Forever {
		return "indefinitely"
	}
	return "until " + time.Unix(0, at).In(zone).Format("2006.01.02 15:04:05")
}

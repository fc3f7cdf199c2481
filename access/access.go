// Package access knows who somebody is and what they may do: users, groups, roles, sessions, tokens, and the log of what was changed.
//
// A Control holds all of it in memory and writes every change through to its store, so that a check is a look into a map and a change is
// in force for the next request. What streams to somebody whose rights change is ended at once.
package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/model"
)

// Store keeps everything durable; confdb does.
type Store interface {
	LoadAccess(ctx context.Context) (model.AccessLoaded, error)
	// What takes a list stores or deletes all of it or, with an error, nothing.
	PutUser(ctx context.Context, list ...*model.User) error
	DeleteUser(ctx context.Context, ids ...model.UserID) error
	PutUserGroup(ctx context.Context, groups ...model.UserGroup) error
	DeleteUserGroup(ctx context.Context, names ...string) error
	PutSession(ctx context.Context, s model.Session) error
	DeleteSessions(ctx context.Context, hashes [][32]byte) error
	PutToken(ctx context.Context, list ...*model.Token) error
	DeleteToken(ctx context.Context, ids ...uint64) error
	TouchAccess(ctx context.Context, sessions []model.Session, tokens []model.Token) error
	RecordAudit(ctx context.Context, e model.AuditEntry) error
	Audit(ctx context.Context, f model.AuditFilter) ([]model.AuditEntry, error)
}

// Errors that callers tell apart; each is wrapped with what was wrong.
var (
	// ErrUnknown says that nobody is signed in by what was sent.
	ErrUnknown = errors.New("sign in first")
	// ErrRefused says that a name, password or link is not right.
	ErrRefused = errors.New("refused")
	// ErrInvalid says that something cannot be stored as it is.
	ErrInvalid = errors.New("invalid")
	// ErrNotFound says that the named object does not exist.
	ErrNotFound = errors.New("not found")
)

// LimitedError says that somebody tried too often.
type LimitedError struct{ After time.Duration }

// Error says when to try again.
func (e *LimitedError) Error() string {
	return fmt.Sprintf("too many attempts; try again in %v", e.After.Round(time.Second))
}

// Options of a Control.
type Options struct {
	Store Store
	// Token, if not empty, lets whoever sends it in as administrator. It is the one of the configuration's token file, and with it
	// loopback alone is not enough.
	Token string
	// ReadOnly lets whoever needs no user in as viewer instead of administrator.
	ReadOnly bool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Logger gets what cannot be written; nil discards.
	Logger *slog.Logger
	// Metrics takes the package's metrics; nil keeps none.
	Metrics *metrics.Set
}

// The limits.
const (
	maxUsers        = 10_000
	maxUserGroups   = 1_000
	maxGrants       = 1_000
	maxSessions     = 50  // of one user; the oldest goes
	maxTokens       = 100 // of one user
	maxStreams      = 10_000
	sessionIdle     = 12 * time.Hour
	sessionAbsolute = 30 * 24 * time.Hour
	firstKeyTime    = 30 * time.Minute
)

// Control is the open state. Its methods may be called from several goroutines.
type Control struct {
	o        Options
	logger   *slog.Logger
	password *hasher
	limits   *limiter
	token    [32]byte

	refused, signedIn, auditLost *metrics.Counter

	// changing is held by whoever changes something, so that checks and writes of one change are not mixed with another's.
	changing sync.Mutex

	mu sync.RWMutex
	people
	sessions map[[32]byte]*model.Session
	tokens   map[[32]byte]*model.Token
	streams  map[*stream]struct{}
	touched  map[[32]byte]bool // sessions and tokens whose last use is not stored
	// firstKey makes the first administrator until firstUntil.
	firstKey   [32]byte
	firstUntil time.Time
}

// Open reads what the store has.
func Open(ctx context.Context, o Options) (*Control, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	c := &Control{
		o: o, logger: o.Logger, password: newHasher(), limits: newLimiter(o.Now), token: sha256.Sum256([]byte(o.Token)),
		people:   people{make(map[model.UserID]*model.User), make(map[string]*model.UserGroup)},
		sessions: make(map[[32]byte]*model.Session),
		tokens:   make(map[[32]byte]*model.Token), streams: make(map[*stream]struct{}), touched: make(map[[32]byte]bool),
		refused:   o.Metrics.NewCounter("tidemark_access_refused_sign_ins_total"),
		signedIn:  o.Metrics.NewCounter("tidemark_access_sign_ins_total"),
		auditLost: o.Metrics.NewCounter("tidemark_access_lost_audit_entries_total"),
	}
	o.Metrics.NewGauge("tidemark_access_sessions", func() float64 {
		c.mu.RLock()
		defer c.mu.RUnlock()
		return float64(len(c.sessions))
	})
	o.Metrics.NewGauge("tidemark_access_password_hashes_waiting", func() float64 { return float64(c.password.waiting.Load()) })
	if err := c.Reload(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Reload reads again what the store has, in the place of what was known: for a store that somebody else writes to.
func (c *Control) Reload(ctx context.Context) error {
	l, err := c.o.Store.LoadAccess(ctx)
	if err != nil {
		return fmt.Errorf("read the users: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.users)
	clear(c.groups)
	clear(c.sessions)
	clear(c.tokens)
	for i := range l.Users {
		c.users[l.Users[i].ID] = &l.Users[i]
	}
	for i := range l.Groups {
		c.groups[strings.ToLower(l.Groups[i].Name)] = &l.Groups[i]
	}
	for i := range l.Sessions {
		c.sessions[l.Sessions[i].Hash] = &l.Sessions[i]
	}
	for i := range l.Tokens {
		c.tokens[l.Tokens[i].Hash] = &l.Tokens[i]
	}
	return nil
}

// HasAdministrator reports whether an administrator can sign in. Until then loopback is administrator.
func (c *Control) HasAdministrator() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.administrators(0) > 0
}

// Open reports whether loopback is administrator.
func (c *Control) Open() bool { return c.o.Token == "" && !c.HasAdministrator() }

const (
	// sweepInterval is how often what has expired is looked for.
	sweepInterval = 500 * time.Millisecond
	// flushEvery is how many sweeps pass before last uses are stored.
	flushEvery = 120
)

// Run ends what expires and stores last uses until ctx ends.
func (c *Control) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			c.flush(last)
			return nil
		case <-tick.C:
			c.sweep()
			if n%flushEvery == 0 {
				c.flush(ctx)
			}
		}
	}
}

// sweep ends the streams of those who are not known any more or may do other things than before.
func (c *Control) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endStreams()
}

// flush stores last uses and deletes expired sessions.
func (c *Control) flush(ctx context.Context) {
	now := c.o.Now()
	var expired [][32]byte
	var sessions []model.Session
	var tokens []model.Token
	c.mu.Lock()
	for hash, s := range c.sessions {
		switch {
		case !sessionLives(s, now):
			expired = append(expired, hash)
			delete(c.sessions, hash)
		case c.touched[hash]:
			sessions = append(sessions, *s)
		}
	}
	for hash := range c.touched {
		if t := c.tokens[hash]; t != nil {
			tokens = append(tokens, *t)
		}
	}
	clear(c.touched)
	c.mu.Unlock()
	var err error
	if len(expired) > 0 {
		err = c.o.Store.DeleteSessions(ctx, expired)
	}
	if len(sessions)+len(tokens) > 0 {
		err = errors.Join(err, c.o.Store.TouchAccess(ctx, sessions, tokens))
	}
	if err != nil {
		c.logger.Warn("last uses of sessions and tokens could not be stored", "error", err)
	}
}

func sessionLives(s *model.Session, now time.Time) bool {
	return now.Sub(time.Unix(0, s.CreatedAt)) < sessionAbsolute && now.Sub(time.Unix(0, s.UsedAt)) < sessionIdle
}

// Users returns all users by name, without their passwords.
func (c *Control) Users() []model.User {
	c.mu.RLock()
	defer c.mu.RUnlock()
	list := make([]model.User, 0, len(c.users))
	for _, u := range c.users {
		list = append(list, shown(u))
	}
	slices.SortFunc(list, func(a, b model.User) int { return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	return list
}

// shown is a copy of a user whose password says only whether there is one.
func shown(u *model.User) model.User {
	copied := *u
	copied.Groups = slices.Clone(u.Groups)
	if copied.Password != "" {
		copied.Password = "set"
	}
	return copied
}

// User returns a user without password.
func (c *Control) User(id model.UserID) (model.User, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	u := c.users[id]
	if u == nil {
		return model.User{}, false
	}
	return shown(u), true
}

// UserNamed finds a user by name, in any case of letters.
func (c *Control) UserNamed(name string) (model.User, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if u := c.named(name); u != nil {
		return shown(u), true
	}
	return model.User{}, false
}

// Groups returns all user groups by name.
func (c *Control) Groups() []model.UserGroup {
	c.mu.RLock()
	defer c.mu.RUnlock()
	list := make([]model.UserGroup, 0, len(c.groups))
	for _, g := range c.groups {
		list = append(list, model.UserGroup{Name: g.Name, Grants: slices.Clone(g.Grants)})
	}
	slices.SortFunc(list, func(a, b model.UserGroup) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Tokens returns the tokens of a user, or of all for zero, by id.
func (c *Control) Tokens(user model.UserID) []model.Token {
	c.mu.RLock()
	defer c.mu.RUnlock()
	list := []model.Token{}
	for _, t := range c.tokens {
		if user == 0 || t.User == user {
			list = append(list, *t)
		}
	}
	slices.SortFunc(list, func(a, b model.Token) int { return int(int64(a.ID) - int64(b.ID)) }) //nolint:gosec // ids are small
	return list
}

// SessionCount returns how many sessions a user has.
func (c *Control) SessionCount(user model.UserID) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	n := 0
	for _, s := range c.sessions {
		if s.User == user {
			n++
		}
	}
	return n
}

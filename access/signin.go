package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tidemark/model"
)

// Client is where a sign-in comes from.
type Client struct {
	// Address is the peer's address with port, Agent what its browser says that it is.
	Address, Agent string
}

// FirstKey makes the key of the one-time link for the first administrator, good for 30 minutes; a key before it is void. Empty when there
// is an administrator.
func (c *Control) FirstKey() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.administrators(0) > 0 {
		return ""
	}
	key := newSecret()
	c.firstKey, c.firstUntil = hashOf(key), c.o.Now().Add(firstKeyTime)
	return key
}

// First makes the first administrator with the key of the link and signs them in. A key is good once.
func (c *Control) First(ctx context.Context, key, name, password string, from Client) (session string, err error) {
	c.changing.Lock()
	defer c.changing.Unlock()
	if err := c.limits.begin("", from.Address); err != nil {
		return "", err
	}
	c.mu.RLock()
	good := c.firstUntil.After(c.o.Now()) && hashOf(key) == c.firstKey && c.administrators(0) == 0
	c.mu.RUnlock()
	if !good {
		return "", fmt.Errorf("%w: the link was used, is older than %v, or there is an administrator already; a restart of the server prints a new one as long as there is none", ErrRefused, firstKeyTime)
	}
	c.limits.succeed("", from.Address)
	u := model.User{Name: name, Role: model.Administrator, AllHosts: true}
	if err := c.putUsers(ctx, []UserChange{{&u, &password}}); err != nil {
		return "", err
	}
	c.mu.Lock()
	c.firstUntil = time.Time{}
	c.mu.Unlock()
	c.Audit(ctx, Everything(ViaLoopback), model.AuditEntry{Action: "first administrator", Object: "user " + u.Name, Address: from.Address})
	return c.beginSession(ctx, u.ID, from)
}

// Login lets a user in by password and returns the text of the session's cookie. It is the only place where a password is compared, so
// that there is one limit on guessing.
func (c *Control) Login(ctx context.Context, name, password string, from Client) (session string, err error) {
	if len(name) > maxNameBytes || len(password) > maxPasswordBytes {
		return "", fmt.Errorf("%w: name or password is too long", ErrRefused)
	}
	if err := c.limits.begin(name, from.Address); err != nil {
		c.refused.Inc()
		return "", err
	}
	c.mu.RLock()
	u := c.named(name)
	var hash string
	var id model.UserID
	if u != nil && !u.Disabled {
		hash, id = u.Password, u.ID
	}
	c.mu.RUnlock()
	ok, weak, err := c.password.check(ctx, password, hash)
	if err != nil {
		return "", err
	}
	if !ok {
		c.refused.Inc()
		c.Audit(ctx, &Identity{Name: name, Via: "password"}, model.AuditEntry{Action: "sign-in refused", Address: from.Address})
		return "", fmt.Errorf("%w: the name or the password is not right", ErrRefused)
	}
	c.limits.succeed(name, from.Address)
	if weak {
		c.strengthen(ctx, id, hash, password)
	}
	// The password may have been changed while it was compared. From here on it cannot be, so that no session begins behind the end of all others.
	c.changing.Lock()
	defer c.changing.Unlock()
	c.mu.RLock()
	u = c.users[id]
	still := u != nil && !u.Disabled && (u.Password == hash || weak)
	c.mu.RUnlock()
	if !still {
		return "", fmt.Errorf("%w: the name or the password is not right", ErrRefused)
	}
	c.signedIn.Inc()
	c.Audit(ctx, &Identity{Name: u.Name, Via: "password"}, model.AuditEntry{Action: "sign-in", Address: from.Address})
	return c.beginSession(ctx, id, from)
}

// strengthen hashes a password anew that had a weaker hash. What goes wrong is logged: the old hash stays good.
func (c *Control) strengthen(ctx context.Context, id model.UserID, old, password string) {
	hash, err := c.password.hash(ctx, password)
	if err == nil {
		c.changing.Lock()
		defer c.changing.Unlock()
		c.mu.RLock()
		u := c.users[id]
		same := u != nil && u.Password == old
		var changed model.User
		if same {
			changed = *u
		}
		c.mu.RUnlock()
		if !same {
			return
		}
		changed.Password = hash
		if err = c.o.Store.PutUser(ctx, &changed); err == nil {
			c.mu.Lock()
			c.users[id] = &changed
			c.mu.Unlock()
		}
	}
	if err != nil {
		c.logger.Warn("a password could not be hashed anew", "error", err)
	}
}

const maxAgentBytes = 200

// beginSession makes a session; the oldest of a user with too many goes.
func (c *Control) beginSession(ctx context.Context, user model.UserID, from Client) (string, error) {
	text, now := newSecret(), c.o.Now().UnixNano()
	agent := strings.ToValidUTF8(from.Agent[:min(len(from.Agent), maxAgentBytes)], "")
	s := &model.Session{Hash: hashOf(text), User: user, CreatedAt: now, UsedAt: now, Address: network(from.Address), Agent: agent}
	if err := c.o.Store.PutSession(ctx, *s); err != nil {
		return "", err
	}
	c.mu.Lock()
	c.sessions[s.Hash] = s
	var oldest *model.Session
	n := 0
	for _, other := range c.sessions {
		if other.User == user {
			if n++; oldest == nil || other.CreatedAt < oldest.CreatedAt {
				oldest = other
			}
		}
	}
	var gone [][32]byte
	if n > maxSessions {
		gone = append(gone, oldest.Hash)
		delete(c.sessions, oldest.Hash)
		c.endStreams()
	}
	c.mu.Unlock()
	if len(gone) > 0 {
		return text, c.o.Store.DeleteSessions(ctx, gone)
	}
	return text, nil
}

// Logout ends a session; one that is not known is nothing to tell.
func (c *Control) Logout(ctx context.Context, session string) error {
	hash := hashOf(session)
	c.mu.Lock()
	s := c.sessions[hash]
	delete(c.sessions, hash)
	c.endStreams()
	name := ""
	if s != nil && c.users[s.User] != nil {
		name = c.users[s.User].Name
	}
	c.mu.Unlock()
	if s == nil {
		return nil
	}
	c.Audit(ctx, &Identity{Name: name, Via: ViaSession}, model.AuditEntry{Action: "sign-out", Address: s.Address})
	return c.o.Store.DeleteSessions(ctx, [][32]byte{hash})
}

// EndSessions ends all sessions of a user but one.
func (c *Control) EndSessions(ctx context.Context, user model.UserID, but *Identity) error {
	var gone [][32]byte
	c.mu.Lock()
	for hash, s := range c.sessions {
		if s.User == user && (but == nil || but.Via != ViaSession || hash != but.hash) {
			gone = append(gone, hash)
			delete(c.sessions, hash)
		}
	}
	c.endStreams()
	c.mu.Unlock()
	if len(gone) == 0 {
		return nil
	}
	return c.o.Store.DeleteSessions(ctx, gone)
}

// ChangePassword sets a user's own password, who must know the old one, and ends the user's other sessions.
func (c *Control) ChangePassword(ctx context.Context, who *Identity, old, password, address string) error {
	if who == nil || who.User == 0 || who.Via != ViaSession {
		return fmt.Errorf("%w: sign in with the old password to change it", ErrRefused)
	}
	if err := c.limits.begin(who.Name, address); err != nil {
		return err
	}
	c.mu.RLock()
	u := c.users[who.User]
	hash := ""
	if u != nil {
		hash = u.Password
	}
	c.mu.RUnlock()
	ok, _, err := c.password.check(ctx, old, hash)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("%w: the old password is not right", ErrRefused)
	}
	c.limits.succeed(who.Name, address)
	return c.SetPassword(ctx, who.User, password, who)
}

// SetPassword sets a user's password and ends the user's sessions, but that of who if it is one.
func (c *Control) SetPassword(ctx context.Context, id model.UserID, password string, who *Identity) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	c.mu.RLock()
	u := c.users[id]
	c.mu.RUnlock()
	if u == nil {
		return fmt.Errorf("user %d: %w", id, ErrNotFound)
	}
	changed := *u
	if err := c.putUsers(ctx, []UserChange{{&changed, &password}}); err != nil {
		return err
	}
	return errors.Join(c.EndSessions(ctx, id, who))
}

package access

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tidemark/model"
)

const maxNameBytes = 128

// checkName reports what is wrong with the name of a user, group or token.
func checkName(what, name string) error {
	fits := name != "" && len(name) <= maxNameBytes && utf8.ValidString(name) && strings.TrimSpace(name) == name
	if !fits || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("%s name %.40q: %w; expected 1 to %d bytes of letters, digits and signs without space around", what, name, ErrInvalid, maxNameBytes)
	}
	return nil
}

// PutUser stores a user; one without id is new. A nil password keeps the one that there is; u.Password is not read. A user whose rights
// become other keeps the sessions, which have the new rights at once; streams are ended. Disabling ends the sessions.
func (c *Control) PutUser(ctx context.Context, u *model.User, password *string) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	u.Password = ""
	return c.putUser(ctx, u, password)
}

// PutHashedUser stores a new user whose password was hashed elsewhere, with argon2id or bcrypt.
func (c *Control) PutHashedUser(ctx context.Context, u *model.User, hash string) error {
	if err := CheckHash(hash); err != nil {
		return err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	u.Password = hash
	return c.putUser(ctx, u, nil)
}

// putUser checks and stores; c.changing is held.
func (c *Control) putUser(ctx context.Context, u *model.User, password *string) error {
	if err := c.checkUser(u); err != nil {
		return err
	}
	if password != nil {
		if err := checkPassword(u.Name, *password); err != nil {
			return err
		}
		hash, err := c.password.hash(ctx, *password)
		if err != nil {
			return err
		}
		u.Password = hash
	}
	stored := *u
	stored.Groups = slices.Clone(u.Groups)
	if err := c.o.Store.PutUser(ctx, &stored); err != nil {
		return err
	}
	c.mu.Lock()
	c.users[stored.ID] = &stored
	c.endStreams()
	c.mu.Unlock()
	*u = shown(&stored)
	if stored.Disabled {
		return c.EndSessions(ctx, stored.ID, nil)
	}
	return nil
}

// checkUser checks a user against what there is, and fills in what stays.
func (c *Control) checkUser(u *model.User) error {
	if err := checkName("user", u.Name); err != nil {
		return err
	}
	if u.Role < model.Viewer || u.Role > model.Administrator {
		return fmt.Errorf("user %s: %w; expected the role viewer, operator, editor or administrator", u.Name, ErrInvalid)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	old := c.users[u.ID]
	switch {
	case u.ID != 0 && old == nil:
		return fmt.Errorf("user %d: %w", u.ID, ErrNotFound)
	case u.ID == 0 && len(c.users) >= maxUsers:
		return fmt.Errorf("user %s: %w; there are %d users, as many as can be", u.Name, ErrInvalid, maxUsers)
	}
	if other := c.named(u.Name); other != nil && other.ID != u.ID {
		return fmt.Errorf("user %s: %w; the name is taken", u.Name, ErrInvalid)
	}
	for i, name := range u.Groups {
		g := c.groups[strings.ToLower(name)]
		if g == nil {
			return fmt.Errorf("user %s: %w; there is no user group %q, make it first", u.Name, ErrInvalid, name)
		}
		u.Groups[i] = g.Name
	}
	slices.Sort(u.Groups)
	u.Groups = slices.Compact(u.Groups)
	if old == nil {
		u.CreatedAt = c.o.Now().UnixNano()
		return nil
	}
	u.CreatedAt = old.CreatedAt
	if u.Password == "" || u.Password == "set" {
		u.Password = old.Password
	}
	// Without an administrator loopback would be one again.
	if lost := u.Role != model.Administrator || u.Disabled; lost && old.Role == model.Administrator && !old.Disabled && c.administrators(u.ID) == 0 {
		return fmt.Errorf("user %s: %w; it is the last administrator, make another one first", old.Name, ErrInvalid)
	}
	return nil
}

// DeleteUser deletes a user with sessions and tokens.
func (c *Control) DeleteUser(ctx context.Context, id model.UserID) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	c.mu.RLock()
	u := c.users[id]
	last := u != nil && u.Role == model.Administrator && !u.Disabled && c.administrators(id) == 0
	c.mu.RUnlock()
	switch {
	case u == nil:
		return fmt.Errorf("user %d: %w", id, ErrNotFound)
	case last:
		return fmt.Errorf("user %s: %w; it is the last administrator, make another one first", u.Name, ErrInvalid)
	}
	if err := c.o.Store.DeleteUser(ctx, id); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.users, id)
	for hash, s := range c.sessions {
		if s.User == id {
			delete(c.sessions, hash)
		}
	}
	for hash, t := range c.tokens {
		if t.User == id {
			delete(c.tokens, hash)
		}
	}
	c.endStreams()
	return nil
}

// PutGroup stores a user group over the one of the same name.
func (c *Control) PutGroup(ctx context.Context, g model.UserGroup) error {
	if err := checkName("user group", g.Name); err != nil {
		return err
	}
	if len(g.Grants) > maxGrants {
		return fmt.Errorf("user group %s: %w; %d grants, at most %d", g.Name, ErrInvalid, len(g.Grants), maxGrants)
	}
	for _, grant := range g.Grants {
		if err := checkName("host group", grant.HostGroup); err != nil {
			return err
		}
		if grant.Role < model.Viewer || grant.Role > model.Editor {
			return fmt.Errorf("user group %s: %w; expected the role viewer, operator or editor on %q", g.Name, ErrInvalid, grant.HostGroup)
		}
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	key := strings.ToLower(g.Name)
	c.mu.RLock()
	old, count := c.groups[key], len(c.groups)
	c.mu.RUnlock()
	if old == nil && count >= maxUserGroups {
		return fmt.Errorf("user group %s: %w; there are %d, as many as can be", g.Name, ErrInvalid, maxUserGroups)
	}
	if old != nil {
		g.Name = old.Name
	}
	g.Grants = slices.Clone(g.Grants)
	if err := c.o.Store.PutUserGroup(ctx, g); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groups[key] = &g
	c.endStreams()
	return nil
}

// DeleteGroup deletes a user group that nobody is in.
func (c *Control) DeleteGroup(ctx context.Context, name string) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	key := strings.ToLower(name)
	c.mu.RLock()
	g := c.groups[key]
	member := ""
	for _, u := range c.users {
		if slices.ContainsFunc(u.Groups, func(n string) bool { return strings.EqualFold(n, name) }) {
			member = u.Name
		}
	}
	c.mu.RUnlock()
	switch {
	case g == nil:
		return fmt.Errorf("user group %.80q: %w", name, ErrNotFound)
	case member != "":
		return fmt.Errorf("user group %s: %w; %s is in it, take its users out first", g.Name, ErrInvalid, member)
	}
	if err := c.o.Store.DeleteUserGroup(ctx, g.Name); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.groups, key)
	c.endStreams()
	return nil
}

// tokenPrefix begins every token, so that people and scanners of repositories know what it is.
const tokenPrefix = "tmk_"

// NewToken makes a token of a user and returns its text, which cannot be shown again. t's name, user, role and expiry are read.
func (c *Control) NewToken(ctx context.Context, t *model.Token) (text string, err error) {
	if err := checkName("token", t.Name); err != nil {
		return "", err
	}
	if t.Role < model.Viewer || t.Role > model.Administrator {
		return "", fmt.Errorf("token %s: %w; expected the role viewer, operator, editor or administrator", t.Name, ErrInvalid)
	}
	now := c.o.Now()
	if t.ExpiresAt != 0 && t.ExpiresAt <= now.UnixNano() {
		return "", fmt.Errorf("token %s: %w; it would be over already at %v", t.Name, ErrInvalid, time.Unix(0, t.ExpiresAt).UTC().Format(time.RFC3339))
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	c.mu.RLock()
	u := c.users[t.User]
	count := 0
	for _, other := range c.tokens {
		if other.User == t.User {
			count++
			if other.Name == t.Name {
				err = fmt.Errorf("token %s: %w; the user has one of this name", t.Name, ErrInvalid)
			}
		}
	}
	c.mu.RUnlock()
	switch {
	case err != nil:
		return "", err
	case u == nil:
		return "", fmt.Errorf("token %s: %w; there is no user %d", t.Name, ErrInvalid, t.User)
	case count >= maxTokens:
		return "", fmt.Errorf("token %s: %w; %s has %d tokens, as many as can be", t.Name, ErrInvalid, u.Name, maxTokens)
	}
	text = newTokenText()
	t.Hash, t.CreatedAt, t.UsedAt = hashOf(text), now.UnixNano(), 0
	if err := c.o.Store.PutToken(ctx, t); err != nil {
		return "", err
	}
	stored := *t
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens[t.Hash] = &stored
	return text, nil
}

// ChangeToken gives a token of a user another name or end; with renew it gets a new text too, which is returned, and the old one is over. A
// user that is zero stands for all. What is empty or negative stays.
func (c *Control) ChangeToken(ctx context.Context, id uint64, of model.UserID, name string, expiresAt int64, renew bool) (t model.Token, text string, err error) {
	c.changing.Lock()
	defer c.changing.Unlock()
	c.mu.RLock()
	found := false
	for _, other := range c.tokens {
		if other.ID == id && (of == 0 || other.User == of) {
			t, found = *other, true
		}
	}
	taken := false
	for _, other := range c.tokens {
		taken = taken || found && other.ID != id && other.User == t.User && other.Name == name
	}
	c.mu.RUnlock()
	if !found {
		return t, "", fmt.Errorf("token %d: %w", id, ErrNotFound)
	}
	old := t.Hash
	if name != "" {
		if err := checkName("token", name); err != nil {
			return t, "", err
		}
		t.Name = name
	}
	if taken {
		return t, "", fmt.Errorf("token %s: %w; the user has one of this name", name, ErrInvalid)
	}
	if expiresAt >= 0 {
		t.ExpiresAt = expiresAt
	}
	if renew {
		text = newTokenText()
		t.Hash, t.UsedAt = hashOf(text), 0
	}
	if err := c.o.Store.PutToken(ctx, &t); err != nil {
		return t, "", err
	}
	stored := t
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tokens, old)
	c.tokens[t.Hash] = &stored
	c.endStreams()
	return t, text, nil
}

// newTokenText returns 256 random bits with a check sum, so that a token that was not copied whole is told from one that was revoked.
func newTokenText() string {
	secret := newSecret()
	return fmt.Sprintf("%s%s%08x", tokenPrefix, secret, crc32.ChecksumIEEE([]byte(secret)))
}

// Whole reports whether a text is a token that was copied whole; other texts, such as the one of a token file, are not looked at.
func Whole(text string) bool {
	rest, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok {
		return true
	}
	const sum = 8
	return len(rest) > sum && fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(rest[:len(rest)-sum]))) == rest[len(rest)-sum:]
}

// DeleteToken revokes a token; with a user that is not zero only one of that user.
func (c *Control) DeleteToken(ctx context.Context, id uint64, of model.UserID) (model.Token, error) {
	c.changing.Lock()
	defer c.changing.Unlock()
	var found *model.Token
	c.mu.RLock()
	for _, t := range c.tokens {
		if t.ID == id && (of == 0 || t.User == of) {
			found = t
		}
	}
	c.mu.RUnlock()
	if found == nil {
		return model.Token{}, fmt.Errorf("token %d: %w", id, ErrNotFound)
	}
	if err := c.o.Store.DeleteToken(ctx, id); err != nil {
		return model.Token{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tokens, found.Hash)
	c.endStreams()
	return *found, nil
}

// IsOwnError reports whether an error says what a caller did wrong.
func IsOwnError(err error) bool {
	var limited *LimitedError
	return errors.Is(err, ErrInvalid) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrRefused) || errors.Is(err, ErrUnknown) || errors.As(err, &limited)
}

package access

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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

// UserChange is a user as it shall be; one without id is new.
type UserChange struct {
	User *model.User
	// Password is the new one; nil keeps the one that there is. User.Password is not read.
	Password *string
}

// PutUser stores a user; see PutUsers.
func (c *Control) PutUser(ctx context.Context, u *model.User, password *string) error {
	return c.PutUsers(ctx, []UserChange{{u, password}})
}

// PutUsers stores users, all of them or, with an error, none. A user whose rights become other keeps the sessions, which have the new rights at once;
// streams are ended. Disabling ends the sessions.
func (c *Control) PutUsers(ctx context.Context, list []UserChange) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	for i := range list {
		list[i].User.Password = ""
	}
	return c.putUsers(ctx, list)
}

// PutHashedUser stores a new user whose password was hashed elsewhere, with argon2id or bcrypt.
func (c *Control) PutHashedUser(ctx context.Context, u *model.User, hash string) error {
	if err := CheckHash(hash); err != nil {
		return err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	u.Password = hash
	return c.putUsers(ctx, []UserChange{{User: u}})
}

// putUsers checks and stores; c.changing is held.
func (c *Control) putUsers(ctx context.Context, list []UserChange) error {
	stored, err := c.checkUsers(list)
	if err != nil {
		return err
	}
	for i := range list { // last: a hash takes its time
		if list[i].Password == nil {
			continue
		}
		if stored[i].Password, err = c.password.hash(ctx, *list[i].Password); err != nil {
			return err
		}
	}
	if err := c.o.Store.PutUser(ctx, stored...); err != nil {
		return err
	}
	c.mu.Lock()
	for _, u := range stored {
		c.users[u.ID] = u
	}
	c.endStreams()
	c.mu.Unlock()
	for i, u := range stored {
		*list[i].User = shown(u)
		if !u.Disabled {
			continue
		}
		if err := c.EndSessions(ctx, u.ID, nil); err != nil {
			return err
		}
	}
	return nil
}

// checkUsers checks users against what there is and against each other, fills in what stays and returns what is to be stored.
func (c *Control) checkUsers(list []UserChange) ([]*model.User, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	next := c.people.clone()
	stored := make([]*model.User, 0, len(list))
	for i := range list {
		list[i].User.Groups = slices.Clone(list[i].User.Groups) // they are put in order
		if err := next.checkUser(list[i].User); err != nil {
			return nil, err
		}
		if password := list[i].Password; password != nil {
			if err := checkPassword(list[i].User.Name, *password); err != nil {
				return nil, err
			}
		}
		u := *list[i].User
		if u.ID == 0 {
			u.CreatedAt = c.o.Now().UnixNano()
		}
		u.Groups = slices.Clone(u.Groups)
		next.add(&u, i)
		stored = append(stored, &u)
	}
	return stored, nil
}

// DeleteUser deletes users with sessions and tokens: all of them or, with an error, none.
func (c *Control) DeleteUser(ctx context.Context, ids ...model.UserID) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	if err := c.checkGone(ids); err != nil {
		return err
	}
	if err := c.o.Store.DeleteUser(ctx, ids...); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		delete(c.users, id)
	}
	maps.DeleteFunc(c.sessions, func(_ [32]byte, s *model.Session) bool { return slices.Contains(ids, s.User) })
	maps.DeleteFunc(c.tokens, func(_ [32]byte, t *model.Token) bool { return slices.Contains(ids, t.User) })
	c.endStreams()
	return nil
}

// checkGone refuses to delete users that are not there, and the last administrator.
func (c *Control) checkGone(ids []model.UserID) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	next := c.people.clone()
	for _, id := range ids {
		u := next.users[id]
		switch {
		case u == nil:
			return fmt.Errorf("user %d: %w", id, ErrNotFound)
		case u.Role == model.Administrator && !u.Disabled && next.administrators(id) == 0:
			return fmt.Errorf("user %s: %w; it is the last administrator, make another one first", u.Name, ErrInvalid)
		}
		delete(next.users, id)
	}
	return nil
}

// PutGroup stores user groups over those of the same names: all of them or, with an error, none.
func (c *Control) PutGroup(ctx context.Context, list ...model.UserGroup) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	stored, err := c.checkGroups(list)
	if err != nil {
		return err
	}
	if err := c.o.Store.PutUserGroup(ctx, stored...); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range stored {
		c.groups[strings.ToLower(stored[i].Name)] = &stored[i]
	}
	c.endStreams()
	return nil
}

// checkGroups checks user groups and returns what is to be stored.
func (c *Control) checkGroups(list []model.UserGroup) ([]model.UserGroup, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	next := c.people.clone()
	stored := make([]model.UserGroup, 0, len(list))
	for _, g := range list {
		if err := checkGroup(&g); err != nil {
			return nil, err
		}
		key := strings.ToLower(g.Name)
		old := next.groups[key]
		if old == nil && len(next.groups) >= maxUserGroups {
			return nil, fmt.Errorf("user group %s: %w; there are %d, as many as can be", g.Name, ErrInvalid, maxUserGroups)
		}
		if old != nil {
			g.Name = old.Name
		}
		g.Grants = slices.Clone(g.Grants)
		next.groups[key] = &g
		stored = append(stored, g)
	}
	return stored, nil
}

func checkGroup(g *model.UserGroup) error {
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
	return nil
}

// DeleteGroup deletes user groups that nobody is in: all of them or, with an error, none.
func (c *Control) DeleteGroup(ctx context.Context, names ...string) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	stored := make([]string, 0, len(names))
	for _, name := range names {
		g, err := c.freeGroup(name)
		if err != nil {
			return err
		}
		stored = append(stored, g)
	}
	if err := c.o.Store.DeleteUserGroup(ctx, stored...); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range stored {
		delete(c.groups, strings.ToLower(name))
	}
	c.endStreams()
	return nil
}

// freeGroup returns the name of a user group as it was written first; an error when it is not there or somebody is in it.
func (c *Control) freeGroup(name string) (string, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	g := c.groups[strings.ToLower(name)]
	if g == nil {
		return "", fmt.Errorf("user group %.80q: %w", name, ErrNotFound)
	}
	for _, u := range c.users {
		if slices.ContainsFunc(u.Groups, func(n string) bool { return strings.EqualFold(n, name) }) {
			return "", fmt.Errorf("user group %s: %w; %s is in it, take its users out first", g.Name, ErrInvalid, u.Name)
		}
	}
	return g.Name, nil
}

// IsOwnError reports whether an error says what a caller did wrong.
func IsOwnError(err error) bool {
	var limited *LimitedError
	return errors.Is(err, ErrInvalid) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrRefused) || errors.Is(err, ErrUnknown) || errors.As(err, &limited)
}

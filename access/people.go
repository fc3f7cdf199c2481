package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tidemark/model"
)

// people are the users and user groups, those that there are or those that there will be when several changes are made.
type people struct {
	users  map[model.UserID]*model.User
	groups map[string]*model.UserGroup // by lower case
}

func (p *people) clone() people { return people{maps.Clone(p.users), maps.Clone(p.groups)} }

// add adds a user that was checked; a new one gets an id that no other has, made of its place in its list, until it is stored.
func (p *people) add(u *model.User, place int) {
	id := u.ID
	if id == 0 {
		id = ^model.UserID(place)
	}
	p.users[id] = u
}

// administrators counts those who can sign in, but one.
func (p *people) administrators(but model.UserID) int {
	n := 0
	for id, u := range p.users {
		if id != but && u.Role == model.Administrator && !u.Disabled {
			n++
		}
	}
	return n
}

// named finds a user by name, in any case of letters; nil for none.
func (p *people) named(name string) *model.User {
	for _, u := range p.users {
		if strings.EqualFold(u.Name, name) {
			return u
		}
	}
	return nil
}

// checkUser checks a user against the others, and fills in what stays.
func (p *people) checkUser(u *model.User) error {
	if err := checkName("user", u.Name); err != nil {
		return err
	}
	if u.Role < model.Viewer || u.Role > model.Administrator {
		return fmt.Errorf("user %s: %w; expected the role viewer, operator, editor or administrator", u.Name, ErrInvalid)
	}
	old := p.users[u.ID]
	switch {
	case u.ID != 0 && old == nil:
		return fmt.Errorf("user %d: %w", u.ID, ErrNotFound)
	case u.ID == 0 && len(p.users) >= maxUsers:
		return fmt.Errorf("user %s: %w; there are %d users, as many as can be", u.Name, ErrInvalid, maxUsers)
	}
	if other := p.named(u.Name); other != nil && (other.ID == 0 || other.ID != u.ID) {
		return fmt.Errorf("user %s: %w; the name is taken", u.Name, ErrInvalid)
	}
	for i, name := range u.Groups {
		g := p.groups[strings.ToLower(name)]
		if g == nil {
			return fmt.Errorf("user %s: %w; there is no user group %q, make it first", u.Name, ErrInvalid, name)
		}
		u.Groups[i] = g.Name
	}
	slices.Sort(u.Groups)
	u.Groups = slices.Compact(u.Groups)
	return p.keep(u, old)
}

// keep fills in what a user keeps of what it was, and refuses that nobody is administrator any more. A new user's old is nil.
func (p *people) keep(u, old *model.User) error {
	if old == nil {
		return nil
	}
	u.CreatedAt = old.CreatedAt
	if u.Password == "" || u.Password == "set" {
		u.Password = old.Password
	}
	// Without an administrator loopback would be one again.
	if lost := u.Role != model.Administrator || u.Disabled; lost && old.Role == model.Administrator && !old.Disabled && p.administrators(u.ID) == 0 {
		return fmt.Errorf("user %s: %w; it is the last administrator, make another one first", old.Name, ErrInvalid)
	}
	return nil
}

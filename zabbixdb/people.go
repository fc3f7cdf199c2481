package zabbixdb

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// User is an account.
type User struct {
	Name string `json:"name"`
	// Role is viewer, operator, editor or administrator.
	Role     string   `json:"role"`
	AllHosts bool     `json:"all_hosts"`
	Groups   []string `json:"groups"`
	Disabled bool     `json:"disabled"`
	// PasswordHash is Zabbix's, with bcrypt; empty lets nobody in with a password.
	PasswordHash string `json:"password_hash,omitempty"`
}

// UserGroup gives its users roles on host groups.
type UserGroup struct {
	Name   string  `json:"name"`
	Grants []Grant `json:"grants"`
}

// Grant is a role on a host group and those below it.
type Grant struct {
	HostGroup string `json:"host_group"`
	Role      string `json:"role"`
}

// The kinds of rows of the tables of people.
const (
	roleAdmin, roleSuper          = "2", "3"
	rightDeny, rightRead          = 0, 2
	noFrontend                    = "3"
	defaultUser, defaultPassword  = "Admin", "zabbix"
	guest                         = "guest"
	viewer, operator, editor, all = "viewer", "operator", "editor", "administrator"
)

// userGroup is a user group while it is read.
type userGroup struct {
	name      string
	off, shut bool // its users are disabled; may not use the page
	// rights are by the name of the host group.
	rights map[string]int
	denies bool
}

// people reads users, their groups and what these may do.
func (s *Source) people(ctx context.Context, out *Settings) error {
	groups, err := s.userGroups(ctx, out)
	if err != nil {
		return err
	}
	silent, err := s.grouped(ctx, "roleid", "SELECT roleid FROM role_rule WHERE name = 'actions.acknowledge_problems' AND value_int = 0")
	if err != nil {
		return err
	}
	hidden, err := s.count(ctx, "SELECT count(DISTINCT roleid) FROM role_rule WHERE name LIKE 'ui.%' AND name <> 'ui.default_access' AND value_int = 0 AND roleid IN (SELECT roleid FROM users WHERE username <> 'guest')")
	if err != nil {
		return err
	}
	s.leave("roles that hide single pages", hidden, "a role here says what may be done, not which pages are shown")
	members, err := s.grouped(ctx, "userid", "SELECT * FROM users_groups ORDER BY usrgrpid")
	if err != nil {
		return err
	}
	err = s.each(ctx, "SELECT u.*, r.type AS roletype FROM users u LEFT JOIN role r ON r.roleid = u.roleid ORDER BY u.userid", func(r row) error {
		if r["username"] == guest {
			s.leave("guests", 1, "nobody is let in without a name here")
			return nil
		}
		u := User{Name: r["username"], Role: operator, Groups: []string{}, PasswordHash: r["passwd"]}
		switch {
		case r["roletype"] == roleSuper:
			u.Role, u.AllHosts = all, true
		case r["roletype"] == roleAdmin:
			u.Role = editor
		case r["roletype"] == "": // since 6.4 a user may be without role, and then cannot sign in
			u.Role, u.Disabled = viewer, true
		case len(silent[r.id("roleid")]) > 0:
			u.Role = viewer
		}
		for _, m := range members[r.id("userid")] {
			if g := groups[m.id("usrgrpid")]; g != nil {
				g.join(&u, out)
			}
		}
		if u.Name == defaultUser && bcrypt.CompareHashAndPassword([]byte(u.PasswordHash), []byte(defaultPassword)) == nil {
			u.PasswordHash = ""
			out.remark("user "+u.Name, "has Zabbix's default password, which is not taken")
		}
		if u.PasswordHash != "" && !strings.HasPrefix(u.PasswordHash, "$2") {
			u.PasswordHash = ""
			out.remark("user "+u.Name, "the password is kept in a form of old Zabbix versions (MD5) and is not taken; set one with 'tidemark user passwd'")
		}
		out.Users = append(out.Users, u)
		return nil
	})
	if err != nil {
		return err
	}
	return s.countPeople(ctx)
}

// countPeople counts what no counterpart exists for.
func (s *Source) countPeople(ctx context.Context) error {
	type left struct{ kind, query, reason string }
	list := []left{
		{"API tokens", "SELECT count(*) FROM token", "tokens are not taken; make new ones with 'tidemark token create'"},
		{"tag filters of user groups", "SELECT count(*) FROM tag_filter", "rights here are on whole hosts; whoever sees a host sees all its problems"},
	}
	if s.mandatory >= 7000000 {
		list = append(list, left{"second factors of user groups", "SELECT count(*) FROM usrgrp WHERE mfa_status = 1", "people sign in with name and password here; put a proxy that asks for more in front of the page"})
	}
	for _, l := range list {
		n, err := s.count(ctx, l.query)
		if err != nil {
			return err
		}
		s.leave(l.kind, n, "%s", l.reason)
	}
	return nil
}

// join makes a user a member of a group.
func (g *userGroup) join(u *User, out *Settings) {
	if u.Disabled = u.Disabled || g.off; g.shut {
		u.PasswordHash = ""
	}
	if u.AllHosts {
		return
	}
	u.Groups = append(u.Groups, g.name)
	if g.denies && !u.Disabled {
		u.Disabled = true
		out.remark("user "+u.Name, "is disabled here because the user group "+g.name+" denies hosts, and rights here only add up; look at the grants, then 'tidemark user enable'")
	}
}

// userGroups reads the groups and adds them to out. A right of Zabbix is for one host group, a grant here also for those below it: one that
// would give more than Zabbix does is left out.
func (s *Source) userGroups(ctx context.Context, out *Settings) (map[int64]*userGroup, error) {
	var names []string
	where := ""
	if s.mandatory >= 6020000 { // before, one kind for hosts and templates
		where = " WHERE type = 0"
	}
	if err := s.each(ctx, "SELECT name FROM hstgrp"+where+" ORDER BY name", func(r row) error { names = append(names, r["name"]); return nil }); err != nil {
		return nil, err
	}
	rights, err := s.grouped(ctx, "groupid", "SELECT r.groupid, r.permission, g.name FROM rights r JOIN hstgrp g ON g.groupid = r.id"+strings.Replace(where, "type", "g.type", 1)+" ORDER BY g.name")
	if err != nil {
		return nil, err
	}
	groups := make(map[int64]*userGroup)
	return groups, s.each(ctx, "SELECT * FROM usrgrp ORDER BY usrgrpid", func(r row) error {
		g := &userGroup{name: r["name"], off: r["users_status"] == "1", shut: r["gui_access"] == noFrontend, rights: make(map[string]int)}
		groups[r.id("usrgrpid")] = g
		for _, right := range rights[r.id("usrgrpid")] {
			g.rights[right["name"]] = right.num("permission")
		}
		out.UserGroups = append(out.UserGroups, UserGroup{Name: g.name, Grants: g.grants(names, out)})
		return nil
	})
}

// grants are what a group gives; names are all host groups.
func (g *userGroup) grants(names []string, out *Settings) []Grant {
	list := []Grant{}
	for _, name := range names {
		have, ok := g.rights[name]
		if !ok {
			continue
		}
		if have == rightDeny {
			g.denies = true
			continue
		}
		more := slices.IndexFunc(names, func(below string) bool {
			there, granted := g.rights[below]
			return strings.HasPrefix(below, name+"/") && (!granted || there < have)
		})
		if more >= 0 {
			out.remark("user group "+g.name, "the right on "+name+" is not taken: here it would be for "+names[more]+" too, where the group has less in Zabbix; grant it with 'tidemark user grant' if that is right")
			continue
		}
		role := editor
		if have == rightRead {
			role = operator
		}
		list = append(list, Grant{HostGroup: name, Role: role})
	}
	return list
}

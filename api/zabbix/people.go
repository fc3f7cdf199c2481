package zabbix

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"tidemark/access"
	"tidemark/model"
)

// ownError gives what a caller did wrong with accounts the form of an answer.
func ownError(err error) error {
	switch {
	case errors.Is(err, access.ErrNotFound):
		return errNotAllowed
	case access.IsOwnError(err):
		return invalidParams("%s", err)
	}
	return err
}

// userGroupID is the id of a user group, made of its name.
func userGroupID(name string) string { return stableID(0, "user group "+strings.ToLower(name)) }

// userKind has the members of users; roles have the numbers 1 to 4.
var userKind = kind[model.User]{
	name: "user", id: "userid",
	fields: []field[model.User]{
		{name: "userid", number: true, get: func(u *model.User) string { return formatID(u.ID) }},
		{name: "username", get: func(u *model.User) string { return u.Name }},
		{name: "name", get: func(*model.User) string { return "" }},
		{name: "surname", get: func(*model.User) string { return "" }},
		{name: "roleid", number: true, get: func(u *model.User) string { return formatInt(int(u.Role)) }},
	},
}

// accessFields are those that getAccess adds: what the user groups of a user say in Zabbix.
var accessFields = []field[model.User]{
	{name: "gui_access", number: true, get: func(*model.User) string { return "0" }},
	{name: "debug_mode", number: true, get: func(*model.User) string { return "0" }},
	{name: "users_status", number: true, get: func(u *model.User) string { return formatBool(u.Disabled) }},
}

// getUsers lists all users for administrators, and for others themselves.
func getUsers(c *call) ([]byte, error) {
	ids, groups := c.ids("userids"), c.ids("usrgrpids")
	var rows []model.User
	for _, u := range c.options.Access.Users() {
		inGroup := groups == nil || slices.ContainsFunc(u.Groups, func(g string) bool { return groups.hasText(userGroupID(g)) })
		if c.seesUser(&u) && ids.has(uint64(u.ID)) && inGroup {
			rows = append(rows, u)
		}
	}
	k := userKind
	if c.flag("getAccess") {
		k.fields = slices.Concat(k.fields, accessFields)
	}
	k.selects = []selection[model.User]{
		{"selectRole", "role", func(_ *call, o output, u *model.User) any { return pick(o, &roleKind, &u.Role) }},
		{"selectUsrgrps", "usrgrps", func(c *call, o output, u *model.User) any {
			return pickAll(o, &userGroupKind, c.userGroups(func(g *model.UserGroup) bool { return slices.Contains(u.Groups, g.Name) }))
		}},
		{"selectMedias", "medias", func(c *call, _ output, u *model.User) any { return c.shownMedias(u) }},
		{"selectMediatypes", "mediatypes", func(*call, output, *model.User) any { return []string{} }},
	}
	return answer(c, &k, rows)
}

func (c *call) seesUser(u *model.User) bool {
	return c.who.Role >= model.Administrator || u.ID == c.who.User
}

var userGroupKind = kind[model.UserGroup]{
	name: "user group", id: "usrgrpid",
	fields: []field[model.UserGroup]{
		{name: "usrgrpid", number: true, get: func(g *model.UserGroup) string { return userGroupID(g.Name) }},
		{name: "name", get: func(g *model.UserGroup) string { return g.Name }},
		{name: "gui_access", number: true, get: func(*model.UserGroup) string { return "0" }},
		{name: "users_status", number: true, get: func(*model.UserGroup) string { return "0" }},
		{name: "debug_mode", number: true, get: func(*model.UserGroup) string { return "0" }},
	},
}

// userGroups returns the user groups that the caller may see, all or the own ones, and that fit.
func (c *call) userGroups(fits func(*model.UserGroup) bool) []model.UserGroup {
	own, _ := c.options.Access.User(c.who.User)
	return slices.DeleteFunc(c.options.Access.Groups(), func(g model.UserGroup) bool {
		return !fits(&g) || c.who.Role < model.Administrator && !slices.Contains(own.Groups, g.Name)
	})
}

func getUserGroups(c *call) ([]byte, error) {
	ids, users, status := c.ids("usrgrpids"), c.ids("userids"), c.number("status", 0, 1)
	rows := c.userGroups(func(g *model.UserGroup) bool {
		return ids.hasText(userGroupID(g.Name)) && status == 0 && (users == nil || len(c.usersIn(g, users)) > 0)
	})
	rights := func(c *call, o output, g *model.UserGroup) any { return pickAll(o, &rightKind, c.rights(g)) }
	k := userGroupKind
	k.selects = []selection[model.UserGroup]{
		{"selectUsers", "users", func(c *call, o output, g *model.UserGroup) any { return pickAll(o, &userKind, c.usersIn(g, nil)) }},
		{"selectHostGroupRights", "hostgroup_rights", rights},
		{"selectRights", "rights", rights},
		{"selectTemplateGroupRights", "templategroup_rights", func(*call, output, *model.UserGroup) any { return []string{} }},
		{"selectTagFilters", "tag_filters", func(*call, output, *model.UserGroup) any { return []string{} }},
	}
	return answer(c, &k, rows)
}

// usersIn returns the users of a group that the caller may see.
func (c *call) usersIn(g *model.UserGroup, ids idSet) []model.User {
	return slices.DeleteFunc(c.options.Access.Users(), func(u model.User) bool {
		return !slices.Contains(u.Groups, g.Name) || !c.seesUser(&u) || !ids.has(uint64(u.ID))
	})
}

// right is what a user group grants on a host group.
type right struct {
	group uint64
	role  model.Role
}

// The permissions of user groups on host groups; the numbers are Zabbix's.
const (
	permissionRead  = 2
	permissionWrite = 3
)

var rightKind = kind[right]{
	name: "right", id: "id",
	fields: []field[right]{
		{name: "id", number: true, get: func(r *right) string { return strconv.FormatUint(r.group, 10) }},
		{name: "permission", number: true, get: func(r *right) string {
			if r.role >= model.Editor {
				return formatInt(permissionWrite)
			}
			return formatInt(permissionRead)
		}},
	},
}

func (c *call) rights(g *model.UserGroup) (list []right) {
	groups, err := c.groups()
	if err != nil {
		return nil
	}
	for _, grant := range g.Grants {
		for _, of := range groups {
			if of.Name == grant.HostGroup {
				list = append(list, right{of.ID, grant.Role})
			}
		}
	}
	return list
}

var roleKind = kind[model.Role]{
	name: "role", id: "roleid", strict: true,
	fields: []field[model.Role]{
		{name: "roleid", number: true, get: func(r *model.Role) string { return formatInt(int(*r)) }},
		{name: "name", get: func(r *model.Role) string { return r.String() }},
		{name: "type", number: true, get: func(r *model.Role) string { return userType(*r) }},
		{name: "readonly", number: true, get: func(*model.Role) string { return "1" }},
	},
}

// getRoles lists the roles, which are the same for all.
func getRoles(c *call) ([]byte, error) {
	ids := c.ids("roleids")
	var rows []model.Role
	for r := model.Viewer; r <= model.Administrator; r++ {
		if ids.has(uint64(r)) {
			rows = append(rows, r)
		}
	}
	k := roleKind
	k.selects = []selection[model.Role]{
		{"selectUsers", "users", func(c *call, o output, r *model.Role) any {
			return pickAll(o, &userKind, slices.DeleteFunc(c.options.Access.Users(), func(u model.User) bool { return u.Role != *r || !c.seesUser(&u) }))
		}},
		{"selectRules", "rules", func(*call, output, *model.Role) any { return []string{} }},
	}
	return answer(c, &k, rows)
}

// mustAdminister fails for all but administrators; every change of accounts begins with it.
func (c *call) mustAdminister() error {
	if !c.administers() {
		return errNotAllowed
	}
	return nil
}

// changeUsers makes users, or with update changes them.
func changeUsers(c *call, update bool) ([]byte, error) {
	if err := c.mustAdminister(); err != nil {
		return nil, err
	}
	list, err := c.objects()
	if err != nil {
		return nil, err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	var next []access.UserChange
	var receivers receiverChange
	before, seen := []any{}, make(map[string]bool)
	for _, p := range list {
		p.once(seen, "username", "userid")
		media, given, err := c.readMedias(p)
		if err != nil {
			return nil, err
		}
		u, password, err := c.readUser(p, update)
		if err != nil {
			return nil, err
		}
		var was any
		if old, ok := c.options.Access.User(u.ID); ok && update {
			was = shownUser(&old)
		}
		if before, next = append(before, was), append(next, access.UserChange{User: &u, Password: password}); given {
			receivers.add(c.options.Objects.Alerting(), u.Name, media)
		}
	}
	if err := c.putUsers(next, &receivers); err != nil {
		return nil, err
	}
	ids := []string{}
	for i := range next {
		access.Changed(c.ctx, "user "+next[i].User.Name, before[i], shownUser(next[i].User))
		ids = append(ids, formatID(next[i].User.ID))
	}
	receivers.tell(c)
	return encodeJSON(map[string]any{"userids": ids})
}

// putUsers stores users and their addresses, which are checked before users are changed.
func (c *call) putUsers(users []access.UserChange, receivers *receiverChange) error {
	if err := receivers.apply(c, true); err != nil {
		return err
	}
	if err := c.options.Access.PutUsers(c.ctx, users); err != nil {
		return ownError(err)
	}
	return receivers.apply(c, false)
}

func createUsers(c *call) ([]byte, error) { return changeUsers(c, false) }

func updateUsers(c *call) ([]byte, error) { return changeUsers(c, true) }

// shownUser is what the audit log keeps of a user.
func shownUser(u *model.User) map[string]any {
	return map[string]any{"name": u.Name, "role": u.Role.String(), "all_hosts": u.AllHosts, "groups": u.Groups, "disabled": u.Disabled}
}

// readUser reads a user that is to be made or changed. A new user sees the hosts of the user groups; nobody but an administrator sees all.
func (c *call) readUser(p *params, update bool) (u model.User, password *string, err error) {
	if update {
		p.require("userid")
		var ok bool
		if u, ok = c.options.Access.User(model.UserID(p.number("userid", 0, math.MaxInt64))); !ok {
			return u, nil, errNotAllowed
		}
	} else {
		for _, name := range []string{"username", "roleid"} {
			p.require(name)
		}
	}
	if name := p.text("username"); name != "" {
		u.Name = name
	}
	if _, ok := p.get("passwd"); ok {
		text := p.text("passwd")
		password = &text
	}
	p.accept("name", "surname", "lang", "theme", "timezone", "autologin", "autologout", "refresh", "rows_per_page", "url", "current_passwd")
	if role := p.number("roleid", 0, int64(model.Administrator)); role != 0 {
		u.Role = model.Role(role)
	}
	if ids, ok := p.references("usrgrps", "usrgrpid", "usrgrpids"); ok {
		u.Groups = nil
		for _, g := range c.options.Access.Groups() {
			if ids.hasText(userGroupID(g.Name)) {
				u.Groups = append(u.Groups, g.Name)
			}
		}
		if len(u.Groups) != len(ids) {
			return u, nil, errNotAllowed
		}
	}
	return u, password, p.done()
}

func deleteUsers(c *call) ([]byte, error) {
	if err := c.mustAdminister(); err != nil {
		return nil, err
	}
	ids := c.listIDs()
	if err := c.done(); err != nil {
		return nil, err
	}
	texts, gone, before := []string{}, []model.UserID{}, []model.User{}
	for _, id := range sortedIDs(ids) {
		u, _ := c.options.Access.User(model.UserID(id))
		texts, gone, before = append(texts, strconv.FormatUint(id, 10)), append(gone, model.UserID(id)), append(before, u)
	}
	if err := c.options.Access.DeleteUser(c.ctx, gone...); err != nil {
		return nil, ownError(err)
	}
	for i := range before {
		access.Changed(c.ctx, "user "+before[i].Name, shownUser(&before[i]), nil)
	}
	return encodeJSON(map[string]any{"userids": texts})
}

// changeUserGroups makes user groups, or with update changes what they grant.
func changeUserGroups(c *call, update bool) ([]byte, error) {
	if err := c.mustAdminister(); err != nil {
		return nil, err
	}
	list, err := c.objects()
	if err != nil {
		return nil, err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	ids, next, before, seen := []string{}, []model.UserGroup{}, []any{}, make(map[string]bool)
	for _, p := range list {
		p.once(seen, "name", "usrgrpid")
		g, old, err := c.readUserGroup(p, update)
		if err != nil {
			return nil, err
		}
		var was any
		if old != nil {
			was = old.Grants
		}
		ids, next, before = append(ids, userGroupID(g.Name)), append(next, g), append(before, was)
	}
	if err := c.options.Access.PutGroup(c.ctx, next...); err != nil {
		return nil, ownError(err)
	}
	for i := range next {
		access.Changed(c.ctx, "user group "+next[i].Name, before[i], next[i].Grants)
	}
	return encodeJSON(map[string]any{"usrgrpids": ids})
}

func createUserGroups(c *call) ([]byte, error) { return changeUserGroups(c, false) }

func updateUserGroups(c *call) ([]byte, error) { return changeUserGroups(c, true) }

func (c *call) readUserGroup(p *params, update bool) (g model.UserGroup, old *model.UserGroup, err error) {
	known := c.options.Access.Groups()
	name := p.text("name")
	if update {
		id := p.text("usrgrpid")
		i := slices.IndexFunc(known, func(g model.UserGroup) bool { return userGroupID(g.Name) == id })
		if i < 0 {
			return g, nil, errNotAllowed
		}
		g, old = model.UserGroup{Name: known[i].Name, Grants: slices.Clone(known[i].Grants)}, &known[i]
		if name != "" && name != g.Name {
			p.fail("name", "a user group keeps its name here")
		}
	} else {
		p.require("name")
		g.Name = name
		if slices.ContainsFunc(known, func(o model.UserGroup) bool { return strings.EqualFold(o.Name, name) }) {
			return g, nil, invalidParams("User group %q already exists.", name)
		}
	}
	for _, fixed := range []string{"users_status", "debug_mode", "userdirectoryid"} {
		if p.number(fixed, 0, math.MaxInt64) != 0 {
			p.fail(fixed, "value must be 0")
		}
	}
	if p.number("gui_access", 0, 3) > 1 { // 1 is with a password of this server, which all have
		p.fail("gui_access", "value must be 0 or 1: all people sign in with a password of this server")
	}
	for member, why := range map[string]string{
		"tag_filters":          "cannot be filled: what a user group grants holds for all problems of a host group",
		"templategroup_rights": "cannot be filled: templates are changed by those who see all hosts",
	} {
		if list, ok := p.children(member); ok && len(list) > 0 {
			p.fail(member, why)
		}
	}
	if rights, ok := p.children("hostgroup_rights"); ok {
		if g.Grants, err = c.readRights(rights); err != nil {
			return g, nil, err
		}
	}
	return g, old, p.done()
}

func (c *call) readRights(list []*params) (grants []model.Grant, err error) {
	groups, err := c.groups()
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		id, permission := uint64(p.number("id", 0, math.MaxInt64)), p.number("permission", 0, permissionWrite)
		if err := p.done(); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(groups, func(g Group) bool { return g.ID == id })
		switch {
		case i < 0:
			return nil, errNotAllowed
		case permission == permissionRead:
			grants = append(grants, model.Grant{HostGroup: groups[i].Name, Role: model.Viewer})
		case permission == permissionWrite:
			grants = append(grants, model.Grant{HostGroup: groups[i].Name, Role: model.Editor})
		default: // one that denies would have to be stronger than others, which none is here
			return nil, invalidParams(`Invalid parameter "/%spermission": value must be one of 2, 3; what no group grants is denied.`, p.place)
		}
	}
	return grants, nil
}

func deleteUserGroups(c *call) ([]byte, error) {
	if err := c.mustAdminister(); err != nil {
		return nil, err
	}
	ids := c.listIDs()
	if err := c.done(); err != nil {
		return nil, err
	}
	var gone []model.UserGroup
	for _, g := range c.options.Access.Groups() {
		if ids.hasText(userGroupID(g.Name)) {
			gone = append(gone, g)
		}
	}
	if len(gone) != len(ids) {
		return nil, errNotAllowed
	}
	texts, names := []string{}, []string{}
	for _, g := range gone {
		texts, names = append(texts, userGroupID(g.Name)), append(names, g.Name)
	}
	if err := c.options.Access.DeleteGroup(c.ctx, names...); err != nil {
		return nil, ownError(err)
	}
	for _, g := range gone {
		access.Changed(c.ctx, "user group "+g.Name, g.Grants, nil)
	}
	return encodeJSON(map[string]any{"usrgrpids": texts})
}

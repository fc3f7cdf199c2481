package rest

import (
	"encoding/json"
	"fmt"
	"net/http"

	"tidemark/access"
	"tidemark/api"
	"tidemark/model"
)

// userRoutes are for administrators.
func (a *API) userRoutes() []api.Route {
	route := func(method, pattern string, fn func(*http.Request) (any, error), doc api.Doc) api.Route {
		return api.Route{Method: method, Pattern: pattern, Permission: api.Administer, Handler: api.JSON(fn), Doc: &doc}
	}
	name := api.Param{Name: "name", Type: "string", About: "The group's name.", Required: true}
	return []api.Route{
		route("GET", "/api/users", a.listUsers, api.Doc{Summary: "Users by name.", Answer: UserList{}}),
		route("POST", "/api/users", a.addUser, api.Doc{Summary: "Makes a user.", Body: UserBody{}, Answer: User{}}),
		route("PUT", "/api/users/{id}", a.changeUser, api.Doc{Summary: "Changes a user; what they may do changes at once.", Body: UserBody{}, Answer: User{}, Params: []api.Param{paramID}}),
		route("DELETE", "/api/users/{id}", a.deleteUser, api.Doc{Summary: "Deletes a user with sessions and tokens.", Answer: struct{}{}, Params: []api.Param{paramID}}),
		route("DELETE", "/api/users/{id}/sessions", a.endSessions, api.Doc{Summary: "Signs a user out everywhere.", Answer: struct{}{}, Params: []api.Param{paramID}}),
		route("GET", "/api/user_groups", a.listUserGroups, api.Doc{Summary: "User groups by name.", Answer: UserGroupList{}}),
		route("PUT", "/api/user_groups/{name}", a.putUserGroup, api.Doc{Summary: "Makes or changes a user group.", Body: UserGroupBody{}, Answer: struct{}{}, Params: []api.Param{name}}),
		route("DELETE", "/api/user_groups/{name}", a.deleteUserGroup, api.Doc{Summary: "Deletes a user group that nobody is in.", Answer: struct{}{}, Params: []api.Param{name}}),
		route("GET", "/api/tokens", a.listTokens, api.Doc{Summary: "Tokens of all users.", Answer: TokenList{}}),
		route("POST", "/api/tokens", a.addToken, api.Doc{Summary: "Makes a token of a user; its text is shown this once.", Body: NewToken{}, Answer: MadeToken{}}),
		route("DELETE", "/api/tokens/{id}", a.revokeToken, api.Doc{Summary: "Revokes a token.", Answer: struct{}{}, Params: []api.Param{paramID}}),
		route("GET", "/api/audit", a.listAudit, api.Doc{
			Summary: "Who changed what, the newest first. Entries are kept for a year, at most 100,000.", Answer: AuditList{},
			Params: []api.Param{
				{Name: "actor", Type: "string", About: "Name of the only user to list."}, paramSearch, paramFrom, paramTo, paramLimit, paramCursor,
			},
		}),
	}
}

func (a *API) formatUser(u *model.User) User {
	return User{
		ID: formatID(u.ID), Name: u.Name, Role: u.Role.String(), AllHosts: u.AllHosts, Groups: append([]string{}, u.Groups...), Disabled: u.Disabled,
		HasPassword: u.Password != "", CreatedAt: floorMillis(u.CreatedAt), Sessions: a.options.Access.SessionCount(u.ID),
	}
}

// auditedUser is what the audit log keeps of a user.
type auditedUser struct {
	Name     string   `json:"name"`
	Role     string   `json:"role"`
	AllHosts bool     `json:"all_hosts"`
	Groups   []string `json:"groups"`
	Disabled bool     `json:"disabled"`
}

func auditUser(u *model.User) auditedUser {
	return auditedUser{u.Name, u.Role.String(), u.AllHosts, append([]string{}, u.Groups...), u.Disabled}
}

func (a *API) listUsers(*http.Request) (any, error) {
	users := a.options.Access.Users()
	list := UserList{Users: make([]User, 0, len(users))}
	for i := range users {
		list.Users = append(list.Users, a.formatUser(&users[i]))
	}
	return list, nil
}

// readUser reads the body of a user.
func readUser(r *http.Request) (u model.User, body UserBody, err error) {
	if err := decodeBody(r, &body); err != nil {
		return u, body, err
	}
	role, ok := model.ParseRole(body.Role)
	if !ok {
		return u, body, badRole(body.Role)
	}
	return model.User{Name: body.Name, Role: role, AllHosts: body.AllHosts || role == model.Administrator, Groups: body.Groups, Disabled: body.Disabled}, body, nil
}

func passwordOf(b *UserBody) *string {
	if b.Password == "" {
		return nil
	}
	return &b.Password
}

func (a *API) addUser(r *http.Request) (any, error) {
	u, body, err := readUser(r)
	if err != nil {
		return nil, err
	}
	switch {
	case body.PasswordHash != "" && body.Password != "":
		return nil, api.BadRequest("both password and password_hash are given, expected one")
	case body.PasswordHash != "":
		err = a.options.Access.PutHashedUser(r.Context(), &u, body.PasswordHash)
	default:
		err = a.options.Access.PutUser(r.Context(), &u, passwordOf(&body))
	}
	if err != nil {
		return nil, accessError(err)
	}
	access.Changed(r.Context(), "user "+u.Name, nil, auditUser(&u))
	return a.formatUser(&u), nil
}

// user finds the user in the address.
func (a *API) user(r *http.Request) (model.User, error) {
	id, err := parseID("the user's id", r.PathValue("id"))
	if err != nil {
		return model.User{}, err
	}
	u, ok := a.options.Access.User(model.UserID(id))
	if !ok {
		return u, api.NotFound(fmt.Sprintf("there is no user with id %d", id))
	}
	return u, nil
}

func (a *API) changeUser(r *http.Request) (any, error) {
	before, err := a.user(r)
	if err != nil {
		return nil, err
	}
	u, body, err := readUser(r)
	if err != nil {
		return nil, err
	}
	if body.PasswordHash != "" {
		return nil, api.BadRequest("password_hash is for new users; give password")
	}
	u.ID = before.ID
	if err := a.options.Access.PutUser(r.Context(), &u, passwordOf(&body)); err != nil {
		return nil, accessError(err)
	}
	object := "user " + before.Name
	if body.Password != "" {
		object += ", with a new password"
		if err := a.options.Access.EndSessions(r.Context(), u.ID, access.From(r.Context())); err != nil {
			return nil, err
		}
	}
	access.Changed(r.Context(), object, auditUser(&before), auditUser(&u))
	return a.formatUser(&u), nil
}

func (a *API) deleteUser(r *http.Request) (any, error) {
	u, err := a.user(r)
	if err != nil {
		return nil, err
	}
	if err := a.options.Access.DeleteUser(r.Context(), u.ID); err != nil {
		return nil, accessError(err)
	}
	access.Changed(r.Context(), "user "+u.Name, auditUser(&u), nil)
	return struct{}{}, nil
}

func (a *API) endSessions(r *http.Request) (any, error) {
	u, err := a.user(r)
	if err != nil {
		return nil, err
	}
	access.Changed(r.Context(), "sessions of user "+u.Name, nil, nil)
	return struct{}{}, a.options.Access.EndSessions(r.Context(), u.ID, nil)
}

func formatGrants(grants []model.Grant) []Grant {
	list := make([]Grant, 0, len(grants))
	for _, g := range grants {
		list = append(list, Grant{HostGroup: g.HostGroup, Role: g.Role.String()})
	}
	return list
}

func (a *API) listUserGroups(*http.Request) (any, error) {
	members := make(map[string]int)
	for _, u := range a.options.Access.Users() {
		for _, g := range u.Groups {
			members[g]++
		}
	}
	list := UserGroupList{Groups: []UserGroup{}}
	for _, g := range a.options.Access.Groups() {
		list.Groups = append(list.Groups, UserGroup{Name: g.Name, Grants: formatGrants(g.Grants), Users: members[g.Name]})
	}
	return list, nil
}

// grantsOf returns the grants of a group for the audit log; nil for no group.
func (a *API) grantsOf(name string) any {
	for _, g := range a.options.Access.Groups() {
		if g.Name == name {
			return map[string]any{"grants": formatGrants(g.Grants)}
		}
	}
	return nil
}

func (a *API) putUserGroup(r *http.Request) (any, error) {
	var body UserGroupBody
	if err := decodeBody(r, &body); err != nil {
		return nil, err
	}
	g := model.UserGroup{Name: r.PathValue("name")}
	for _, grant := range body.Grants {
		role, ok := model.ParseRole(grant.Role)
		if !ok {
			return nil, badRole(grant.Role)
		}
		g.Grants = append(g.Grants, model.Grant{HostGroup: grant.HostGroup, Role: role})
	}
	before := a.grantsOf(g.Name)
	if err := a.options.Access.PutGroup(r.Context(), g); err != nil {
		return nil, accessError(err)
	}
	access.Changed(r.Context(), "user group "+g.Name, before, a.grantsOf(g.Name))
	return struct{}{}, nil
}

func (a *API) deleteUserGroup(r *http.Request) (any, error) {
	name := r.PathValue("name")
	before := a.grantsOf(name)
	if err := a.options.Access.DeleteGroup(r.Context(), name); err != nil {
		return nil, accessError(err)
	}
	access.Changed(r.Context(), "user group "+name, before, nil)
	return struct{}{}, nil
}

func (a *API) listTokens(*http.Request) (any, error) {
	return a.formatTokens(a.options.Access.Tokens(0)), nil
}

func (a *API) addToken(r *http.Request) (any, error) {
	var body NewToken
	if err := decodeBody(r, &body); err != nil {
		return nil, err
	}
	u, ok := a.options.Access.UserNamed(body.User)
	if !ok {
		return nil, api.BadRequest(fmt.Sprintf("there is no user %.80q; make the user first, or give the name of one that exists", body.User))
	}
	made, err := a.makeToken(r, u.ID, body)
	if err == nil {
		access.Changed(r.Context(), "token "+made.Name+" of user "+u.Name, nil, made.Token)
	}
	return made, err
}

func (a *API) revokeToken(r *http.Request) (any, error) {
	t, err := a.revoke(r, 0)
	if err != nil {
		return nil, err
	}
	shown := a.formatToken(&t)
	access.Changed(r.Context(), "token "+t.Name+" of user "+shown.User, shown, nil)
	return struct{}{}, nil
}

func (a *API) listAudit(r *http.Request) (any, error) {
	p := readParams(r)
	f := model.AuditFilter{Actor: p.text("actor"), Search: p.text("search"), Limit: p.limit() + 1, Before: p.cursorID("audit")}
	if p.values.Has("from") || p.values.Has("to") {
		span := p.timeRange(a.options.Now().UnixNano())
		f.From, f.To = span.From, span.To
	}
	if p.err != nil {
		return nil, p.err
	}
	entries, err := a.options.Access.AuditEntries(r.Context(), f)
	if err != nil {
		return nil, err
	}
	list := AuditList{Entries: make([]AuditEntry, 0, len(entries))}
	if len(entries) == f.Limit {
		entries = entries[:f.Limit-1]
		list.Next = encodeCursor("audit", formatID(entries[len(entries)-1].ID))
	}
	for _, e := range entries {
		list.Entries = append(list.Entries, AuditEntry{
			ID: formatID(e.ID), At: floorMillis(e.At), Actor: e.Actor, Via: e.Via, Address: e.Address, Action: e.Action, Object: e.Object,
			Before: rawOrNull(e.Before), After: rawOrNull(e.After),
		})
	}
	return list, nil
}

func rawOrNull(text string) json.RawMessage {
	if text == "" {
		return json.RawMessage("null")
	}
	return json.RawMessage(text)
}

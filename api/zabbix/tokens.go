package zabbix

import (
	"math"
	"strconv"

	"tidemark/access"
	"tidemark/model"
)

var tokenKind = kind[model.Token]{
	name: "token", id: "tokenid", strict: true,
	fields: []field[model.Token]{
		{name: "tokenid", number: true, get: func(t *model.Token) string { return strconv.FormatUint(t.ID, 10) }},
		{name: "name", get: func(t *model.Token) string { return t.Name }},
		{name: "description", get: func(*model.Token) string { return "" }},
		{name: "userid", number: true, get: func(t *model.Token) string { return formatID(t.User) }},
		{name: "lastaccess", number: true, get: func(t *model.Token) string { return seconds(t.UsedAt) }},
		{name: "status", number: true, get: func(*model.Token) string { return "0" }},
		{name: "expires_at", number: true, get: func(t *model.Token) string { return seconds(t.ExpiresAt) }},
		{name: "created_at", number: true, get: func(t *model.Token) string { return seconds(t.CreatedAt) }},
		{name: "creator_userid", number: true, get: func(t *model.Token) string { return formatID(t.User) }},
	},
}

// administers reports whether the caller may change what belongs to others.
func (c *call) administers() bool { return c.who.Role >= model.Administrator && c.who.SeesAllHosts() }

// tokenOwner returns whose tokens the caller may change: zero for those of all.
func (c *call) tokenOwner() (model.UserID, error) {
	switch {
	case c.administers():
		return 0, nil
	case c.who.User == 0 || c.who.Via != access.ViaSession:
		return 0, applicationError("No permissions to change tokens: that is for users who signed in with their password, and for administrators.")
	}
	return c.who.User, nil
}

// getTokens lists the caller's tokens, and for administrators those of all.
func getTokens(c *call) ([]byte, error) {
	ids, users, text := c.ids("tokenids"), c.ids("userids"), c.text("token")
	valid := c.number("valid_at", 0, math.MaxInt32)
	expired := c.number("expired_at", 0, math.MaxInt32)
	of := c.who.User
	if c.administers() {
		of = 0
	} else if of == 0 {
		return answer(c, &tokenKind, []model.Token(nil))
	}
	if text != "" {
		return nil, invalidParams(`Invalid parameter "/token": tokens are not found by their texts here.`)
	}
	var rows []model.Token
	for _, t := range c.options.Access.Tokens(of) {
		over := func(at int64) bool { return t.ExpiresAt != 0 && t.ExpiresAt <= at*1e9 }
		if ids.has(t.ID) && users.has(uint64(t.User)) && (valid == 0 || !over(valid)) && (expired == 0 || over(expired)) {
			rows = append(rows, t)
		}
	}
	return answer(c, &tokenKind, rows)
}

// shownToken is what the audit log keeps of a token.
func shownToken(t *model.Token) map[string]any {
	return map[string]any{"name": t.Name, "user": formatID(t.User), "role": t.Role.String(), "expires_at": seconds(t.ExpiresAt)}
}

// createTokens makes tokens that may do what their users may. Their texts are thrown away: token.generate makes those that are told.
func createTokens(c *call) ([]byte, error) {
	owner, err := c.tokenOwner()
	if err != nil {
		return nil, err
	}
	list, err := c.objects()
	if err != nil {
		return nil, err
	}
	var made []*model.Token
	for _, p := range list {
		p.require("name")
		p.accept("description")
		user := model.UserID(p.number("userid", int64(c.who.User), math.MaxInt64))
		t := model.Token{Name: p.text("name"), User: user, ExpiresAt: p.number("expires_at", 0, math.MaxInt32) * 1e9}
		if p.number("status", 0, 1) != 0 {
			p.fail("status", "value must be 0; a token that shall not work is deleted here")
		}
		if err := p.done(); err != nil {
			return nil, err
		}
		u, ok := c.options.Access.User(user)
		if !ok || owner != 0 && owner != user {
			return nil, errNotAllowed
		}
		t.Role = min(u.Role, c.who.MostRole())
		made = append(made, &t)
	}
	if _, err := c.options.Access.NewTokens(c.ctx, made); err != nil {
		return nil, ownError(err)
	}
	ids := []string{}
	for _, t := range made {
		access.Changed(c.ctx, "token "+t.Name, nil, shownToken(t))
		ids = append(ids, strconv.FormatUint(t.ID, 10))
	}
	return encodeJSON(map[string]any{"tokenids": ids})
}

// updateTokens changes names and ends of tokens.
func updateTokens(c *call) ([]byte, error) {
	owner, err := c.tokenOwner()
	if err != nil {
		return nil, err
	}
	list, err := c.objects()
	if err != nil {
		return nil, err
	}
	var changes []access.TokenChange
	seen := make(map[string]bool)
	for _, p := range list {
		p.require("tokenid")
		p.accept("description")
		change := access.TokenChange{ID: uint64(p.number("tokenid", 0, math.MaxInt64)), Name: p.text("name"), ExpiresAt: -1}
		if _, ok := p.get("expires_at"); ok {
			change.ExpiresAt = p.number("expires_at", 0, math.MaxInt32) * 1e9
		}
		p.once(seen, "tokenid")
		if p.number("status", 0, 1) != 0 {
			p.fail("status", "value must be 0; a token that shall not work is deleted here")
		}
		if err := p.done(); err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	changed, err := c.options.Access.ChangeTokens(c.ctx, owner, changes)
	if err != nil {
		return nil, ownError(err)
	}
	ids := []string{}
	for i := range changed {
		access.Changed(c.ctx, "token "+changed[i].Name, nil, shownToken(&changed[i].Token))
		ids = append(ids, strconv.FormatUint(changed[i].ID, 10))
	}
	return encodeJSON(map[string]any{"tokenids": ids})
}

// generateTokens gives tokens new texts and tells them, this once.
func generateTokens(c *call) ([]byte, error) {
	owner, err := c.tokenOwner()
	if err != nil {
		return nil, err
	}
	ids := c.listIDs()
	if err := c.done(); err != nil {
		return nil, err
	}
	type made struct {
		ID    string `json:"tokenid"`
		Token string `json:"token"`
	}
	var changes []access.TokenChange
	for _, id := range sortedIDs(ids) {
		changes = append(changes, access.TokenChange{ID: id, ExpiresAt: -1, Renew: true})
	}
	changed, err := c.options.Access.ChangeTokens(c.ctx, owner, changes)
	if err != nil {
		return nil, ownError(err)
	}
	out := []made{}
	for i := range changed {
		t := &changed[i]
		access.Changed(c.ctx, "token "+t.Name, nil, map[string]any{"renewed": true, "user": formatID(t.User)})
		out = append(out, made{strconv.FormatUint(t.ID, 10), t.Text})
	}
	return encodeJSON(out)
}

func deleteTokens(c *call) ([]byte, error) {
	owner, err := c.tokenOwner()
	if err != nil {
		return nil, err
	}
	ids := c.listIDs()
	if err := c.done(); err != nil {
		return nil, err
	}
	gone, err := c.options.Access.DeleteTokens(c.ctx, owner, sortedIDs(ids)...)
	if err != nil {
		return nil, ownError(err)
	}
	texts := []string{}
	for i := range gone {
		access.Changed(c.ctx, "token "+gone[i].Name, shownToken(&gone[i]), nil)
		texts = append(texts, strconv.FormatUint(gone[i].ID, 10))
	}
	return encodeJSON(map[string]any{"tokenids": texts})
}

package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// Me returns who the caller is and what they may do.
func (c *Client) Me(ctx context.Context) (Me, error) { return get[Me](ctx, c, "/api/me", nil) }

// SetOwnPassword changes the caller's password and ends their other sessions; it needs a session, not a token.
func (c *Client) SetOwnPassword(ctx context.Context, p OwnPassword) error {
	return c.Call(ctx, http.MethodPut, "/api/me/password", p, nil)
}

// OwnTokens returns the caller's tokens, without their texts.
func (c *Client) OwnTokens(ctx context.Context) (TokenList, error) {
	return get[TokenList](ctx, c, "/api/me/tokens", nil)
}

// MakeOwnToken makes a token of the caller's; it needs a session, not a token. Its text is in this answer alone.
func (c *Client) MakeOwnToken(ctx context.Context, t NewToken) (MadeToken, error) {
	return change[MadeToken](ctx, c, http.MethodPost, "/api/me/tokens", t)
}

// RevokeOwnToken ends a token of the caller's; it needs a session, not a token.
func (c *Client) RevokeOwnToken(ctx context.Context, id string) error {
	return c.remove(ctx, "/api/me/tokens/"+url.PathEscape(id))
}

// The calls below are for administrators.

// Tokens returns the tokens of all users, without their texts.
func (c *Client) Tokens(ctx context.Context) (TokenList, error) {
	return get[TokenList](ctx, c, "/api/tokens", nil)
}

// MakeToken makes a token of a user. Its text is in this answer alone.
func (c *Client) MakeToken(ctx context.Context, t NewToken) (MadeToken, error) {
	return change[MadeToken](ctx, c, http.MethodPost, "/api/tokens", t)
}

// RevokeToken ends a token.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.remove(ctx, "/api/tokens/"+url.PathEscape(id))
}

// Users returns the users by name.
func (c *Client) Users(ctx context.Context) (UserList, error) {
	return get[UserList](ctx, c, "/api/users", nil)
}

// MakeUser makes a user.
func (c *Client) MakeUser(ctx context.Context, u UserBody) (User, error) {
	return change[User](ctx, c, http.MethodPost, "/api/users", u)
}

// SaveUser changes a user; what they may do changes at once.
func (c *Client) SaveUser(ctx context.Context, id string, u UserBody) (User, error) {
	return change[User](ctx, c, http.MethodPut, "/api/users/"+url.PathEscape(id), u)
}

// DeleteUser removes a user with sessions and tokens.
func (c *Client) DeleteUser(ctx context.Context, id string) error {
	return c.remove(ctx, "/api/users/"+url.PathEscape(id))
}

// EndSessions signs a user out everywhere.
func (c *Client) EndSessions(ctx context.Context, userID string) error {
	return c.remove(ctx, "/api/users/"+url.PathEscape(userID)+"/sessions")
}

// UserGroups returns the user groups by name.
func (c *Client) UserGroups(ctx context.Context) (UserGroupList, error) {
	return get[UserGroupList](ctx, c, "/api/user_groups", nil)
}

// SaveUserGroup makes or changes a user group.
func (c *Client) SaveUserGroup(ctx context.Context, name string, g UserGroupBody) error {
	return c.Call(ctx, http.MethodPut, "/api/user_groups/"+url.PathEscape(name), g, nil)
}

// DeleteUserGroup removes a user group that nobody is in.
func (c *Client) DeleteUserGroup(ctx context.Context, name string) error {
	return c.remove(ctx, "/api/user_groups/"+url.PathEscape(name))
}

// AuditFilter says which entries of the audit log are listed. Zero fields do not filter.
type AuditFilter struct {
	// Actor is the name of who did it; Search must be in the action or the object, in any case of letters.
	Actor, Search string
	// From and To bound the time, From included and To not.
	From, To time.Time
}

// Query is the filter as the route /api/audit takes it.
func (f AuditFilter) Query() url.Values {
	query := url.Values{}
	setText(query, "actor", f.Actor)
	setText(query, "search", f.Search)
	setTime(query, "from", f.From)
	setTime(query, "to", f.To)
	return query
}

// Audit returns a page of who changed what, the newest first.
func (c *Client) Audit(ctx context.Context, f AuditFilter, p Page) (AuditList, error) {
	return page[AuditList](ctx, c, "/api/audit", f.Query(), p)
}

// AllAudit walks all entries that fit, page by page, the newest first.
func (c *Client) AllAudit(ctx context.Context, f AuditFilter) iter.Seq2[AuditEntry, error] {
	return all(func(p Page) ([]AuditEntry, string, error) {
		list, err := c.Audit(ctx, f, p)
		return list.Entries, list.Next, err
	})
}

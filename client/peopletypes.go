package client

import "encoding/json"

// AuditEntry is one thing that somebody did.
type AuditEntry struct {
	ID      string `json:"id"`
	At      int64  `json:"at"`
	Actor   string `json:"actor"`
	Via     string `json:"via"`
	Address string `json:"address"`
	Action  string `json:"action"`
	Object  string `json:"object"`
	// Before and After have what became different; null for nothing.
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// AuditList is a page of the audit log.
type AuditList struct {
	Entries []AuditEntry `json:"entries"`
	Next    string       `json:"next,omitempty"`
}

// FirstAdministrator is the body with which the one-time link makes the first administrator.
type FirstAdministrator struct {
	Key      string `json:"key"`
	Name     string `json:"name"`
	Password string `json:"password"`
}

// Grant gives a role on the hosts of a host group and those below it.
type Grant struct {
	HostGroup string `json:"host_group"`
	Role      string `json:"role"`
}

// Login is the body of a sign-in.
type Login struct {
	Name     string `json:"name"`
	Password string `json:"password"`
}

// MadeToken is a new token with its text, which is shown this once.
type MadeToken struct {
	Token
	Text string `json:"text"`
}

// Me is who sends requests.
type Me struct {
	// ID is empty for those who are no user.
	ID   string `json:"id"`
	Name string `json:"name"`
	Role string `json:"role"`
	// AllHosts says that no host is hidden.
	AllHosts bool `json:"all_hosts"`
	// Via is session, token, loopback or token file.
	Via string `json:"via"`
	// First says that there is no administrator yet, so that loopback is one.
	First bool `json:"first"`
	// Trapper is the address on which the server listens for agents and senders; empty when it does not.
	Trapper string `json:"trapper,omitempty"`
}

// NewToken is the body that makes a token.
type NewToken struct {
	Name string `json:"name"`
	// User is the name of the user whose token it is; not for one's own.
	User string `json:"user,omitempty"`
	// Role bounds what the token may do; viewer if not given.
	Role string `json:"role,omitempty"`
	// ExpiresAt is Unix milliseconds; 0 is never.
	ExpiresAt int64 `json:"expires_at,omitempty"`
}

// OwnPassword is the body of a change of one's own password.
type OwnPassword struct {
	Old string `json:"old"`
	New string `json:"new"`
}

// Token is a token without its text.
type Token struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	User string `json:"user"`
	Role string `json:"role"`
	// Times are Unix milliseconds; ExpiresAt is null for never, UsedAt for not yet.
	CreatedAt int64  `json:"created_at"`
	ExpiresAt *int64 `json:"expires_at"`
	UsedAt    *int64 `json:"used_at"`
}

// TokenList is all tokens.
type TokenList struct {
	Tokens []Token `json:"tokens"`
}

// User is an account.
type User struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Role string `json:"role"`
	// AllHosts lets the role hold on all hosts; else groups grant it.
	AllHosts bool     `json:"all_hosts"`
	Groups   []string `json:"groups"`
	Disabled bool     `json:"disabled"`
	// HasPassword is false for users that only tokens let in.
	HasPassword bool  `json:"has_password"`
	CreatedAt   int64 `json:"created_at"`
	// Sessions is how many browsers are signed in.
	Sessions int `json:"sessions"`
}

// UserBody is the body that makes or changes a user.
type UserBody struct {
	Name     string   `json:"name"`
	Role     string   `json:"role"`
	AllHosts bool     `json:"all_hosts"`
	Groups   []string `json:"groups,omitempty"`
	Disabled bool     `json:"disabled,omitempty"`
	// Password may be left out: a new user can then be let in by tokens only, a known one keeps theirs.
	Password string `json:"password,omitempty"`
	// PasswordHash is, for a new user, a password hashed elsewhere with bcrypt or argon2id, such as by Zabbix.
	PasswordHash string `json:"password_hash,omitempty"`
}

// UserGroup gives its users roles on hosts.
type UserGroup struct {
	Name   string  `json:"name"`
	Grants []Grant `json:"grants"`
	Users  int     `json:"users"`
}

// UserGroupBody is the body that makes or changes a user group.
type UserGroupBody struct {
	Grants []Grant `json:"grants"`
}

// UserGroupList is all user groups.
type UserGroupList struct {
	Groups []UserGroup `json:"groups"`
}

// UserList is all users.
type UserList struct {
	Users []User `json:"users"`
}

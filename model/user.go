package model

import "fmt"

// UserID names a person's account.
type UserID uint64

// Role is what somebody may do, each more than the one before.
type Role uint8

// The roles. The zero value may do nothing.
const (
	NoRole Role = iota
	// Viewer reads values, problems and definitions.
	Viewer
	// Operator acknowledges and closes problems.
	Operator
	// Editor changes the configuration.
	Editor
	// Administrator sees and changes the server itself and its users.
	Administrator
)

var roleNames = [...]string{"none", "viewer", "operator", "editor", "administrator"}

// String returns the word for a role.
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return fmt.Sprintf("role %d", uint8(r))
}

// ParseRole reads the word for a role; "none" is no role.
func ParseRole(name string) (Role, bool) {
	for r := Viewer; r <= Administrator; r++ {
		if roleNames[r] == name {
			return r, true
		}
	}
	return NoRole, false
}

// User is an account.
type User struct {
	ID   UserID
	Name string
	// Role is what the user may do at most; on all hosts with AllHosts, else where a group of the user grants it.
	Role     Role
	AllHosts bool
	Disabled bool
	// Groups are the names of user groups.
	Groups []string
	// Password is the hash of the password, in the form that names its algorithm; empty lets nobody in with a password.
	Password string
	// CreatedAt is Unix nanoseconds.
	CreatedAt int64
}

// UserGroup gives its users roles on hosts.
type UserGroup struct {
	Name   string
	Grants []Grant
}

// Grant gives a role on the hosts of a host group and of the groups below it: "Linux" is for "Linux/Web" too.
type Grant struct {
	HostGroup string
	Role      Role
}

// Session is one signed-in browser. The text in its cookie is known to the browser only; Hash is its SHA-256.
type Session struct {
	Hash [32]byte
	User UserID
	// CreatedAt and UsedAt are Unix nanoseconds.
	CreatedAt, UsedAt int64
	// Address and Agent say where it was begun, for people.
	Address, Agent string
}

// Token lets a program in as a user. Hash is the SHA-256 of its text.
type Token struct {
	ID   uint64
	User UserID
	Name string
	Hash [32]byte
	// Role bounds what the token may do; its user may be allowed less.
	Role Role
	// CreatedAt, ExpiresAt and UsedAt are Unix nanoseconds; ExpiresAt is zero for never, UsedAt for not yet.
	CreatedAt, ExpiresAt, UsedAt int64
}

// AccessLoaded is everything that is kept of people and what they may do.
type AccessLoaded struct {
	Users    []User
	Groups   []UserGroup
	Sessions []Session
	Tokens   []Token
}

// AuditEntry is one thing that somebody did.
type AuditEntry struct {
	ID uint64
	// At is Unix nanoseconds.
	At int64
	// Actor is the user's name; Via says how they came in: session, token NAME, loopback, token file, command line.
	Actor, Via string
	// Address is where from; empty when not over the network.
	Address string
	// Action is what was done: a method and route, or a word such as login. Object is what it was done to.
	Action, Object string
	// Before and After are JSON objects of what became different, without secrets; empty for nothing.
	Before, After string
}

// AuditFilter says which entries are looked for. Zero fields do not filter.
type AuditFilter struct {
	// Actor is a user's name, Search a text in action or object.
	Actor, Search string
	// From and To bound the time, Unix nanoseconds, half-open.
	From, To int64
	// Before is the id of the last entry of the page before; zero is the first page.
	Before uint64
	// Limit is at most 10,000; zero is 100.
	Limit int
}

package confdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"tidemark/model"
)

type packedGrant struct {
	HostGroup string     `json:"g"`
	Role      model.Role `json:"r"`
}

// LoadAccess reads users, groups, sessions and tokens.
func (d *DB) LoadAccess(ctx context.Context) (model.AccessLoaded, error) {
	var l model.AccessLoaded
	scan := func(query string, f func(*sql.Rows) error) error {
		rows, err := d.sql.QueryContext(ctx, query)
		if err != nil {
			return err
		}
		return each(rows, f)
	}
	err := errors.Join(
		scan("SELECT id, name, role, all_hosts, disabled, groups, password, created_at FROM users ORDER BY lower(name)", func(r *sql.Rows) error {
			var u model.User
			var groups string
			err := r.Scan(&u.ID, &u.Name, &u.Role, &u.AllHosts, &u.Disabled, &groups, &u.Password, &u.CreatedAt)
			if err == nil {
				u.Groups, err = unpack[string](groups)
			}
			l.Users = append(l.Users, u)
			return err
		}),
		scan("SELECT name, grants FROM user_groups ORDER BY lower(name)", func(r *sql.Rows) error {
			var g model.UserGroup
			var grants string
			err := r.Scan(&g.Name, &grants)
			var list []packedGrant
			if err == nil {
				list, err = unpack[packedGrant](grants)
			}
			for _, p := range list {
				g.Grants = append(g.Grants, model.Grant(p))
			}
			l.Groups = append(l.Groups, g)
			return err
		}),
		scan("SELECT hash, user_id, created_at, used_at, address, agent FROM sessions ORDER BY created_at", func(r *sql.Rows) error {
			var s model.Session
			var hash []byte
			err := r.Scan(&hash, &s.User, &s.CreatedAt, &s.UsedAt, &s.Address, &s.Agent)
			copy(s.Hash[:], hash)
			l.Sessions = append(l.Sessions, s)
			return err
		}),
		scan("SELECT id, user_id, name, hash, role, created_at, expires_at, used_at FROM tokens ORDER BY id", func(r *sql.Rows) error {
			var t model.Token
			var hash []byte
			err := r.Scan(&t.ID, &t.User, &t.Name, &hash, &t.Role, &t.CreatedAt, &t.ExpiresAt, &t.UsedAt)
			copy(t.Hash[:], hash)
			l.Tokens = append(l.Tokens, t)
			return err
		}),
	)
	return l, d.wrap("read users", err)
}

// PutUser stores users, all of them or, with an error, none; one without id is new and gets it. A name that another user has, in any case of letters,
// is ErrInvalid.
func (d *DB) PutUser(ctx context.Context, list ...*model.User) error {
	ids := make([]model.UserID, len(list))
	err := d.change(ctx, "store users", func(c *change) (err error) {
		for i, u := range list {
			if ids[i], err = c.putUser(ctx, u); err != nil {
				return taken(err, "user "+u.Name)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, u := range list {
		u.ID = ids[i]
	}
	return nil
}

func (c *change) putUser(ctx context.Context, u *model.User) (model.UserID, error) {
	args := []any{u.Name, u.Role, u.AllHosts, u.Disabled, pack(u.Groups), u.Password}
	if u.ID != 0 {
		return u.ID, c.execNow(ctx, "UPDATE users SET name = ?, role = ?, all_hosts = ?, disabled = ?, groups = ?, password = ? WHERE id = ?", append(args, u.ID)...)
	}
	id, err := c.insert(ctx, "INSERT INTO users (name, role, all_hosts, disabled, groups, password, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
		append(args, u.CreatedAt)...)
	return model.UserID(id), err
}

// taken turns a refused duplicate into ErrInvalid.
func taken(err error, what string) error {
	var s *sqlite.Error
	var p *pgconn.PgError
	if errors.As(err, &s) && s.Code() == sqlitelib.SQLITE_CONSTRAINT_UNIQUE || errors.As(err, &p) && p.Code == uniqueViolation {
		return fmt.Errorf("%s: %w; the name is taken", what, ErrInvalid)
	}
	return err
}

// execAll runs a statement once for each of some arguments, in one transaction.
func execAll[T any](ctx context.Context, d *DB, what, query string, args []T) error {
	return d.change(ctx, what, func(c *change) error {
		for _, arg := range args {
			if err := c.exec(ctx, query, arg); err != nil {
				return err
			}
		}
		return nil
	})
}

// DeleteUser deletes users with sessions and tokens: all of them or, with an error, none.
func (d *DB) DeleteUser(ctx context.Context, ids ...model.UserID) error {
	return execAll(ctx, d, "delete users", "DELETE FROM users WHERE id = ?", ids)
}

// PutUserGroup stores user groups over those with their names: all of them or, with an error, none.
func (d *DB) PutUserGroup(ctx context.Context, groups ...model.UserGroup) error {
	return d.change(ctx, "store user groups", func(c *change) error {
		for i := range groups {
			if err := c.putUserGroup(ctx, &groups[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *change) putUserGroup(ctx context.Context, g *model.UserGroup) error {
	list := make([]packedGrant, len(g.Grants))
	for i, grant := range g.Grants {
		list[i] = packedGrant(grant)
	}
	have, err := c.id(ctx, "SELECT count(*) FROM user_groups WHERE lower(name) = lower(?)", g.Name)
	if err != nil {
		return err
	}
	if have > 0 { // it keeps its name as it was written first
		return c.exec(ctx, "UPDATE user_groups SET grants = ? WHERE lower(name) = lower(?)", pack(list), g.Name)
	}
	return c.exec(ctx, "INSERT INTO user_groups (name, grants) VALUES (?, ?)", g.Name, pack(list))
}

// DeleteUserGroup deletes user groups: all of them or, with an error, none.
func (d *DB) DeleteUserGroup(ctx context.Context, names ...string) error {
	return execAll(ctx, d, "delete user groups", "DELETE FROM user_groups WHERE lower(name) = lower(?)", names)
}

const replaceSession = ` ON CONFLICT (hash) DO UPDATE SET user_id = excluded.user_id, created_at = excluded.created_at, used_at = excluded.used_at,
	address = excluded.address, agent = excluded.agent`

// PutSession stores a session.
func (d *DB) PutSession(ctx context.Context, s model.Session) error {
	return d.change(ctx, "store session", func(c *change) error {
		return c.exec(ctx, "INSERT INTO sessions (hash, user_id, created_at, used_at, address, agent) VALUES (?, ?, ?, ?, ?, ?)"+replaceSession,
			s.Hash[:], s.User, s.CreatedAt, s.UsedAt, s.Address, s.Agent)
	})
}

// DeleteSessions deletes sessions.
func (d *DB) DeleteSessions(ctx context.Context, hashes [][32]byte) error {
	return d.change(ctx, "delete sessions", func(c *change) error {
		for i := range hashes {
			if err := c.exec(ctx, "DELETE FROM sessions WHERE hash = ?", hashes[i][:]); err != nil {
				return err
			}
		}
		return nil
	})
}

// PutToken stores tokens, all of them or, with an error, none; those without an id are new and get it.
func (d *DB) PutToken(ctx context.Context, list ...*model.Token) error {
	ids := make([]uint64, len(list))
	err := d.change(ctx, "store tokens", func(c *change) (err error) {
		for i, t := range list {
			if ids[i], err = c.putToken(ctx, t); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, t := range list {
		t.ID = ids[i]
	}
	return nil
}

func (c *change) putToken(ctx context.Context, t *model.Token) (uint64, error) {
	if t.ID != 0 {
		return t.ID, c.exec(ctx, "UPDATE tokens SET name = ?, hash = ?, expires_at = ?, used_at = ? WHERE id = ?", t.Name, t.Hash[:], t.ExpiresAt, t.UsedAt, t.ID)
	}
	id, err := c.insert(ctx, "INSERT INTO tokens (user_id, name, hash, role, created_at, expires_at, used_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
		t.User, t.Name, t.Hash[:], t.Role, t.CreatedAt, t.ExpiresAt, t.UsedAt)
	return uint64(id), err
}

// DeleteToken deletes tokens: all of them or, with an error, none.
func (d *DB) DeleteToken(ctx context.Context, ids ...uint64) error {
	return execAll(ctx, d, "delete tokens", "DELETE FROM tokens WHERE id = ?", ids)
}

// TouchAccess stores when sessions and tokens were last used.
func (d *DB) TouchAccess(ctx context.Context, sessions []model.Session, tokens []model.Token) error {
	return d.change(ctx, "store last uses", func(c *change) error {
		for i := range sessions {
			if err := c.exec(ctx, "UPDATE sessions SET used_at = ? WHERE hash = ?", sessions[i].UsedAt, sessions[i].Hash[:]); err != nil {
				return err
			}
		}
		for i := range tokens {
			if err := c.exec(ctx, "UPDATE tokens SET used_at = ? WHERE id = ?", tokens[i].UsedAt, tokens[i].ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// The bounds of the audit log: entries older or more than this are dropped.
const (
	auditAge   = 365 * 24 * 3600 * int64(1e9)
	auditCount = 100_000
	// auditPrune is every how many entries the bounds are kept.
	auditPrune = 64
)

// RecordAudit stores an entry and from time to time drops those past the bounds: a year, 100,000 entries.
func (d *DB) RecordAudit(ctx context.Context, e model.AuditEntry) error {
	return d.change(ctx, "store audit entry", func(c *change) error {
		id, err := c.insert(ctx, "INSERT INTO audit (at, actor, via, address, action, object, before, after) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			e.At, e.Actor, e.Via, e.Address, e.Action, e.Object, e.Before, e.After)
		if err != nil || id%auditPrune != 0 {
			return err
		}
		return c.exec(ctx, "DELETE FROM audit WHERE at < ? OR id <= ?", e.At-auditAge, id-auditCount)
	})
}

// Audit lists entries, the newest first.
func (d *DB) Audit(ctx context.Context, f model.AuditFilter) ([]model.AuditEntry, error) {
	where, args := []string{"true"}, []any{}
	add := func(condition string, values ...any) { where, args = append(where, condition), append(args, values...) }
	if f.Actor != "" {
		add("actor = ?", f.Actor)
	}
	if f.Search != "" {
		add(`(action LIKE ? ESCAPE '\' OR object LIKE ? ESCAPE '\')`, likePattern(f.Search), likePattern(f.Search))
	}
	if f.From != 0 {
		add("at >= ?", f.From)
	}
	if f.To != 0 {
		add("at < ?", f.To)
	}
	if f.Before != 0 {
		add("id < ?", f.Before)
	}
	rows, err := d.sql.QueryContext(ctx, "SELECT id, at, actor, via, address, action, object, before, after FROM audit WHERE "+
		strings.Join(where, " AND ")+" ORDER BY id DESC LIMIT ?", append(args, limit(f.Limit))...)
	if err != nil {
		return nil, d.wrap("read the audit log", err)
	}
	var list []model.AuditEntry
	err = each(rows, func(r *sql.Rows) error {
		var e model.AuditEntry
		err := r.Scan(&e.ID, &e.At, &e.Actor, &e.Via, &e.Address, &e.Action, &e.Object, &e.Before, &e.After)
		list = append(list, e)
		return err
	})
	return list, d.wrap("read the audit log", err)
}

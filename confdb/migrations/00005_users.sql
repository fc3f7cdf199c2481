-- +goose Up
-- People and what they may do. groups and grants are JSON; '' is none.
CREATE TABLE users (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL COLLATE NOCASE UNIQUE,
    role       INTEGER NOT NULL,
    all_hosts  INTEGER NOT NULL DEFAULT 0,
    disabled   INTEGER NOT NULL DEFAULT 0,
    groups     TEXT NOT NULL DEFAULT '',
    password   TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE user_groups (
    name   TEXT PRIMARY KEY COLLATE NOCASE,
    grants TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

-- postgres: CREATE UNIQUE INDEX users_name ON users (lower(name));
-- postgres: CREATE UNIQUE INDEX user_groups_name ON user_groups (lower(name));

-- hash is the SHA-256 of what the browser or the program sends.
CREATE TABLE sessions (
    hash       BLOB PRIMARY KEY,
    user_id    INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL,
    address    TEXT NOT NULL DEFAULT '',
    agent      TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_user ON sessions (user_id);

CREATE TABLE tokens (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id    INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name       TEXT NOT NULL,
    hash       BLOB NOT NULL UNIQUE,
    role       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL DEFAULT 0,
    used_at    INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX tokens_user ON tokens (user_id);

CREATE TABLE audit (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    via     TEXT NOT NULL,
    address TEXT NOT NULL DEFAULT '',
    action  TEXT NOT NULL,
    object  TEXT NOT NULL DEFAULT '',
    before  TEXT NOT NULL DEFAULT '',
    after   TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX audit_at ON audit (at);

-- +goose Down
DROP TABLE audit;
DROP TABLE tokens;
DROP TABLE sessions;
DROP TABLE user_groups;
DROP TABLE users;

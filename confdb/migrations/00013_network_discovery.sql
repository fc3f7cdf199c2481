-- +goose Up
-- Rules of network discovery and actions on hosts that were found or registered themselves. kind: rule, action. body is sealed JSON.
CREATE TABLE discovery_objects (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

-- When each rule was last worked off, Unix seconds.
CREATE TABLE net_rules (
    rule       TEXT PRIMARY KEY,
    scanned_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What rules found; services is JSON.
CREATE TABLE net_hosts (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    rule       TEXT NOT NULL,
    ident      TEXT NOT NULL,
    host_id    INTEGER REFERENCES hosts (id) ON DELETE SET NULL,
    up         INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    services   TEXT NOT NULL,
    UNIQUE (rule, ident)
) STRICT;
CREATE INDEX net_hosts_host ON net_hosts (host_id) WHERE host_id IS NOT NULL;

-- +goose Down
DROP TABLE net_hosts;
DROP TABLE net_rules;
DROP TABLE discovery_objects;

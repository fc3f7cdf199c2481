-- +goose Up
-- version is that of the newest row in dashboard_versions.
CREATE TABLE dashboards (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    name     TEXT NOT NULL COLLATE NOCASE UNIQUE,
    everyone INTEGER NOT NULL DEFAULT 0,
    version  INTEGER NOT NULL
) STRICT;

-- postgres: CREATE UNIQUE INDEX dashboards_name ON dashboards (lower(name));

-- body is JSON, as package dashboard writes it.
CREATE TABLE dashboard_versions (
    dashboard_id INTEGER NOT NULL REFERENCES dashboards (id) ON DELETE CASCADE,
    version      INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    author       TEXT NOT NULL DEFAULT '',
    note         TEXT NOT NULL DEFAULT '',
    body         TEXT NOT NULL,
    PRIMARY KEY (dashboard_id, version)
) STRICT;

-- +goose Down
DROP TABLE dashboard_versions;
DROP TABLE dashboards;

-- +goose Up
-- Actions, media types, receivers and maintenances, each as JSON: they are few, and read and written whole.
CREATE TABLE alert_objects (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE escalations (
    action      TEXT NOT NULL,
    problem_id  INTEGER NOT NULL,
    current_id  INTEGER NOT NULL,
    recovery_id INTEGER NOT NULL DEFAULT 0,
    step        INTEGER NOT NULL,
    next_at     INTEGER NOT NULL,
    held_until  INTEGER NOT NULL DEFAULT 0,
    told        TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (problem_id, action)
) STRICT, WITHOUT ROWID;

CREATE TABLE alerts (
    id         INTEGER PRIMARY KEY,
    action     TEXT NOT NULL,
    kind       INTEGER NOT NULL,
    event_id   INTEGER NOT NULL,
    problem_id INTEGER NOT NULL,
    severity   INTEGER NOT NULL,
    host       TEXT NOT NULL,
    name       TEXT NOT NULL,
    tags       TEXT NOT NULL DEFAULT '',
    step       INTEGER NOT NULL,
    receiver   TEXT NOT NULL,
    media      TEXT NOT NULL,
    sent_to    TEXT NOT NULL,
    subject    TEXT NOT NULL,
    body       TEXT NOT NULL,
    state      INTEGER NOT NULL,
    attempts   INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    sent_at    INTEGER NOT NULL DEFAULT 0,
    at         INTEGER NOT NULL,
    error      TEXT NOT NULL DEFAULT '',
    together   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX alerts_waiting ON alerts (id) WHERE state = 0;
CREATE INDEX alerts_problem ON alerts (problem_id, id);
CREATE INDEX alerts_created ON alerts (created_at);

-- +goose Down
DROP TABLE alerts;
DROP TABLE escalations;
DROP TABLE alert_objects;
DELETE FROM meta WHERE name IN ('alerted_event', 'last_alert');

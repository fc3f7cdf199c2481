-- +goose Up
INSERT INTO meta (name, value) VALUES ('evaluated', 0);

-- No foreign keys to hosts and triggers: events outlive both.
CREATE TABLE events (
    id         INTEGER PRIMARY KEY,
    trigger_id INTEGER NOT NULL,
    host_id    INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    problem    INTEGER NOT NULL,
    severity   INTEGER NOT NULL,
    name       TEXT NOT NULL,
    opdata     TEXT NOT NULL DEFAULT '',
    tags       TEXT NOT NULL DEFAULT '',
    problem_id INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX events_at ON events (at);

-- One row for each event that opened a problem.
CREATE TABLE problems (
    event_id       INTEGER PRIMARY KEY REFERENCES events (id) ON DELETE CASCADE,
    host_id        INTEGER NOT NULL,
    at             INTEGER NOT NULL,
    recovered_at   INTEGER NOT NULL DEFAULT 0,
    recovery_id    INTEGER NOT NULL DEFAULT 0,
    acknowledged   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX problems_open ON problems (event_id) WHERE recovered_at = 0;
CREATE INDEX problems_host ON problems (host_id, event_id);

CREATE TABLE acknowledgements (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id INTEGER NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    at       INTEGER NOT NULL,
    author   TEXT NOT NULL DEFAULT '',
    message  TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX acknowledgements_event ON acknowledgements (event_id);

CREATE TABLE trigger_states (
    trigger_id   INTEGER PRIMARY KEY,
    problem      INTEGER NOT NULL,
    error        TEXT NOT NULL DEFAULT '',
    changed_at   INTEGER NOT NULL DEFAULT 0,
    open_problem INTEGER NOT NULL DEFAULT 0
) STRICT;

-- +goose Down
DROP TABLE trigger_states;
DROP TABLE acknowledgements;
DROP TABLE problems;
DROP TABLE events;
DELETE FROM meta WHERE name = 'evaluated';

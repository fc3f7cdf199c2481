-- +goose Up
-- How hosts' connections must be protected. A row without host_id is for agents that register themselves. The keys are
-- sealed with the key in secret.key.
CREATE TABLE host_tls (
    id           INTEGER PRIMARY KEY,
    host_id      INTEGER UNIQUE REFERENCES hosts (id) ON DELETE CASCADE,
    connect      INTEGER NOT NULL,
    accept       INTEGER NOT NULL,
    identity     TEXT NOT NULL DEFAULT '',
    key          BLOB NOT NULL DEFAULT x'',
    old_identity TEXT NOT NULL DEFAULT '',
    old_key      BLOB NOT NULL DEFAULT x'',
    old_until    INTEGER NOT NULL DEFAULT 0,
    issuer       TEXT NOT NULL DEFAULT '',
    subject      TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX host_tls_identity ON host_tls (identity) WHERE identity <> '';

-- +goose Down
DROP TABLE host_tls;

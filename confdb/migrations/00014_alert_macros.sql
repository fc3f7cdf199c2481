-- +goose Up
-- Values of macros that the media type's script wants, taken when the alert was made: a JSON object, empty for none.
ALTER TABLE alerts ADD COLUMN macros TEXT NOT NULL DEFAULT '';

-- Global regular expressions of one's own, each as JSON.
CREATE TABLE regexps (
    name TEXT PRIMARY KEY,
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE regexps;
ALTER TABLE alerts DROP COLUMN macros;

-- +goose Up
-- The newest value of a rule that was kept or worked on, Unix nanoseconds; and its text while nobody has worked on it.
ALTER TABLE rule_items ADD COLUMN value_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rule_items ADD COLUMN value BLOB;

-- +goose Down
ALTER TABLE rule_items DROP COLUMN value;
ALTER TABLE rule_items DROP COLUMN value_at;

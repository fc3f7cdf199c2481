-- +goose Up
-- owner_id is a user's id, 0 for none; ids are not given again, so that what a user had who was deleted belongs to nobody. groups is a JSON
-- list of names of user groups that may see it; '' is none.
ALTER TABLE dashboards ADD COLUMN owner_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE dashboards ADD COLUMN private INTEGER NOT NULL DEFAULT 0;
ALTER TABLE dashboards ADD COLUMN groups TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE dashboards DROP COLUMN groups;
ALTER TABLE dashboards DROP COLUMN private;
ALTER TABLE dashboards DROP COLUMN owner_id;

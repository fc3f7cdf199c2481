-- +goose Up
-- Values of macros that the media type's script wants, taken when the alert was made: a JSON object, empty for none.
ALTER TABLE alerts ADD COLUMN macros TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE alerts DROP COLUMN macros;

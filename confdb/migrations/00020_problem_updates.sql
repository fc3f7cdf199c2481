-- +goose Up
-- Until when somebody suppressed a problem, Unix nanoseconds; 9223372036854775807 is until somebody ends it, zero not.
ALTER TABLE problems ADD COLUMN suppressed_until INTEGER NOT NULL DEFAULT 0;

-- What was done besides acknowledging: actions are the bits of model.ProblemActions. Rows of before are all acknowledgements.
ALTER TABLE acknowledgements ADD COLUMN actions INTEGER NOT NULL DEFAULT 2;
ALTER TABLE acknowledgements ADD COLUMN user_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE acknowledgements ADD COLUMN old_severity INTEGER NOT NULL DEFAULT 0;
ALTER TABLE acknowledgements ADD COLUMN new_severity INTEGER NOT NULL DEFAULT 0;
ALTER TABLE acknowledgements ADD COLUMN suppressed_until INTEGER NOT NULL DEFAULT 0;
UPDATE acknowledgements SET actions = 6 WHERE message <> '';

-- +goose Down
ALTER TABLE acknowledgements DROP COLUMN suppressed_until;
ALTER TABLE acknowledgements DROP COLUMN new_severity;
ALTER TABLE acknowledgements DROP COLUMN old_severity;
ALTER TABLE acknowledgements DROP COLUMN user_id;
ALTER TABLE acknowledgements DROP COLUMN actions;
ALTER TABLE problems DROP COLUMN suppressed_until;

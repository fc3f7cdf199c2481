-- +goose Up
-- A table whose rows move to another way of being kept has them in the table old as well. Those of old count whose clock is below boundary, which
-- falls with each step down to since, or from until on. low and high bound clock in old; moved_rows and moved_sum are the count and checksum of
-- what was moved, checked says that they were compared with all of old.
ALTER TABLE tidemark_tables
	ADD COLUMN old text,
	ADD COLUMN since integer NOT NULL DEFAULT 0,
	ADD COLUMN boundary integer NOT NULL DEFAULT 0,
	ADD COLUMN until integer NOT NULL DEFAULT 2147483647,
	ADD COLUMN low integer,
	ADD COLUMN high integer,
	ADD COLUMN total_rows bigint NOT NULL DEFAULT 0,
	ADD COLUMN moved_rows bigint NOT NULL DEFAULT 0,
	ADD COLUMN moved_sum numeric NOT NULL DEFAULT 0,
	ADD COLUMN checked boolean NOT NULL DEFAULT false;
-- The generation grows whenever a table changes its place. Who changes it locks the table ACCESS EXCLUSIVE first, so a transaction that has read it knows
-- where everything is until it ends. mode is how further tables are kept.
CREATE TABLE tidemark_shape (
	one boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
	generation bigint NOT NULL,
	mode text NOT NULL DEFAULT ''
);
INSERT INTO tidemark_shape (generation) VALUES (1);

-- +goose Down
DROP TABLE tidemark_shape;
ALTER TABLE tidemark_tables DROP COLUMN old, DROP COLUMN since, DROP COLUMN boundary, DROP COLUMN until, DROP COLUMN low, DROP COLUMN high,
	DROP COLUMN total_rows, DROP COLUMN moved_rows, DROP COLUMN moved_sum, DROP COLUMN checked;

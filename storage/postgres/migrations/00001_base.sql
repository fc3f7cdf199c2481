-- +goose Up
-- One row for each server's spool: how far it is in the tables.
CREATE TABLE tidemark_state (
	spool numeric(20) NOT NULL PRIMARY KEY,
	applied numeric(20) NOT NULL,
	at timestamptz NOT NULL DEFAULT now()
);
-- Bounds of all stored times, Unix nanoseconds. One row.
CREATE TABLE tidemark_bounds (
	one boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
	low bigint NOT NULL,
	high bigint NOT NULL
);
INSERT INTO tidemark_bounds (low, high) VALUES (9223372036854775807, -9223372036854775808);
-- Where values of an item are: bit n of types is value type n, bit n of classes retention class n.
CREATE TABLE tidemark_items (
	itemid bigint NOT NULL PRIMARY KEY,
	types integer NOT NULL,
	classes integer NOT NULL
);
CREATE TABLE tidemark_marks (
	key text NOT NULL PRIMARY KEY,
	value text NOT NULL,
	at bigint NOT NULL
);
-- The tables of values and trends by class, and how each is kept.
CREATE TABLE tidemark_tables (
	name text NOT NULL PRIMARY KEY,
	parent text NOT NULL,
	class integer NOT NULL,
	mode text NOT NULL,
	step integer NOT NULL
);

-- +goose Down
DROP TABLE tidemark_tables, tidemark_marks, tidemark_items, tidemark_bounds, tidemark_state;

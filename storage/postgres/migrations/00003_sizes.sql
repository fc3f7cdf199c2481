-- +goose Up
-- How large the database was, about once an hour for a month: at is Unix seconds, wal the position of the write-ahead log in bytes.
CREATE TABLE tidemark_sizes (
	at bigint NOT NULL PRIMARY KEY,
	bytes bigint NOT NULL,
	wal bigint NOT NULL
);

-- +goose Down
DROP TABLE tidemark_sizes;

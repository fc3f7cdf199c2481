-- +goose Up
-- What was stored in a database that two servers share and may not be evaluated yet: pieces of batches in the form of the spool's records. lsn is the term's
-- epoch in the upper 24 bits and a number that grows with each batch in the lower 40.
CREATE TABLE tidemark_journal (
	lsn bigint NOT NULL,
	piece integer NOT NULL,
	record bytea NOT NULL,
	PRIMARY KEY (lsn, piece)
);
-- The log of declared items, which two servers share: records in the form of the catalog's file, in the order of n.
CREATE TABLE tidemark_catalog (
	n bigint NOT NULL PRIMARY KEY,
	record bytea NOT NULL
);

-- +goose Down
DROP TABLE tidemark_catalog, tidemark_journal;

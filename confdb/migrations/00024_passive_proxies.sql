-- +goose Up
-- Where the server asks a proxy, host:port; empty for a proxy that connects by itself.
ALTER TABLE proxies ADD COLUMN address TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE proxies DROP COLUMN address;

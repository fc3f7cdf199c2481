-- +goose Up
-- Proxies stand between agents and the server. A host with proxy_id is asked, and its values are preprocessed, by that proxy.
CREATE TABLE proxies (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL DEFAULT ''
) STRICT;
ALTER TABLE hosts ADD COLUMN proxy_id INTEGER REFERENCES proxies (id) ON DELETE SET NULL;
CREATE INDEX hosts_proxy ON hosts (proxy_id) WHERE proxy_id IS NOT NULL;

-- A row of host_tls with proxy_id and without host_id is a proxy's.
ALTER TABLE host_tls ADD COLUMN proxy_id INTEGER REFERENCES proxies (id) ON DELETE CASCADE;
CREATE UNIQUE INDEX host_tls_proxy ON host_tls (proxy_id) WHERE proxy_id IS NOT NULL;

-- +goose Down
DELETE FROM host_tls WHERE proxy_id IS NOT NULL;
DROP INDEX host_tls_proxy;
ALTER TABLE host_tls DROP COLUMN proxy_id;
DROP INDEX hosts_proxy;
ALTER TABLE hosts DROP COLUMN proxy_id;
DROP TABLE proxies;

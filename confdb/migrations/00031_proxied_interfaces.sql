-- +goose Up
-- What a proxy said last of an interface of a host, which has the number from 0 on among them. available: 0 not known, 1 yes, 2 no, and why not.
CREATE TABLE proxied_interfaces (
    host_id   INTEGER NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    number    INTEGER NOT NULL,
    proxy_id  INTEGER NOT NULL REFERENCES proxies (id) ON DELETE CASCADE,
    available INTEGER NOT NULL,
    error     TEXT NOT NULL,
    PRIMARY KEY (host_id, number)
) STRICT;
CREATE INDEX proxied_interfaces_proxy ON proxied_interfaces (proxy_id);

-- +goose Down
DROP TABLE proxied_interfaces;

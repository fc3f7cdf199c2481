-- +goose Up
INSERT INTO meta (name, value) VALUES ('rules_inherited', 0);

-- Graph and host prototypes of discovery rules. kind: 2 graph, 3 host. body is the JSON of the export.
CREATE TABLE rule_prototypes (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    rule_id INTEGER NOT NULL REFERENCES discovery_rules (id) ON DELETE CASCADE,
    kind    INTEGER NOT NULL,
    uuid    TEXT NOT NULL DEFAULT '',
    name    TEXT NOT NULL,
    body    TEXT NOT NULL
) STRICT;
CREATE INDEX rule_prototypes_rule ON rule_prototypes (rule_id);

-- Graphs of hosts and templates; body is the JSON of the export.
CREATE TABLE graphs (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    host_id     INTEGER REFERENCES hosts (id) ON DELETE CASCADE,
    template_id INTEGER REFERENCES templates (id) ON DELETE CASCADE,
    uuid        TEXT NOT NULL DEFAULT '',
    name        TEXT NOT NULL,
    body        TEXT NOT NULL
) STRICT;
CREATE INDEX graphs_host ON graphs (host_id) WHERE host_id IS NOT NULL;
CREATE INDEX graphs_template ON graphs (template_id) WHERE template_id IS NOT NULL;

-- The item that takes the values of a rule, for each host that has the rule. error is what the last value met; at, Unix
-- seconds, when the last value was applied.
CREATE TABLE rule_items (
    item_id INTEGER PRIMARY KEY,
    host_id INTEGER NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    rule_id INTEGER NOT NULL REFERENCES discovery_rules (id) ON DELETE CASCADE,
    error   TEXT NOT NULL DEFAULT '',
    at      INTEGER NOT NULL DEFAULT 0,
    UNIQUE (host_id, rule_id)
) STRICT;
CREATE INDEX rule_items_rule ON rule_items (rule_id);

-- Items made by a rule: the prototype, the discovery macros that it uses and what overrides changed, both JSON. disable_at and
-- delete_at are set, in Unix seconds, while the item is lost; 0: never. disabled is set once disable_at has come.
CREATE TABLE discovered_items (
    item_id    INTEGER PRIMARY KEY,
    host_id    INTEGER NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    rule_item  INTEGER NOT NULL REFERENCES rule_items (item_id) ON DELETE CASCADE,
    def_id     INTEGER NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    instance   TEXT NOT NULL,
    changes    TEXT NOT NULL DEFAULT '',
    lost_at    INTEGER NOT NULL DEFAULT 0,
    disable_at INTEGER NOT NULL DEFAULT 0,
    delete_at  INTEGER NOT NULL DEFAULT 0,
    disabled   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX discovered_items_host ON discovered_items (host_id);
CREATE INDEX discovered_items_rule ON discovered_items (rule_item);
CREATE INDEX discovered_items_def ON discovered_items (def_id);
CREATE INDEX discovered_items_lost ON discovered_items (lost_at) WHERE lost_at > 0;

-- Triggers made by a rule are rows of triggers, so that all triggers have ids from one counter.
ALTER TABLE triggers ADD COLUMN rule_item INTEGER REFERENCES rule_items (item_id) ON DELETE CASCADE;
ALTER TABLE triggers ADD COLUMN changes TEXT NOT NULL DEFAULT '';
ALTER TABLE triggers ADD COLUMN lost_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE triggers ADD COLUMN disable_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE triggers ADD COLUMN delete_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE triggers ADD COLUMN disabled INTEGER NOT NULL DEFAULT 0;
CREATE INDEX triggers_rule_item ON triggers (rule_item) WHERE rule_item IS NOT NULL;
CREATE INDEX triggers_lost ON triggers (lost_at) WHERE lost_at > 0;

-- Hosts made by a rule. A lost host is deleted at delete_at and disabled at disable_at.
CREATE TABLE discovered_hosts (
    host_id    INTEGER PRIMARY KEY REFERENCES hosts (id) ON DELETE CASCADE,
    rule_item  INTEGER NOT NULL REFERENCES rule_items (item_id) ON DELETE CASCADE,
    def_id     INTEGER NOT NULL REFERENCES rule_prototypes (id) ON DELETE CASCADE,
    instance   TEXT NOT NULL,
    changes    TEXT NOT NULL DEFAULT '',
    lost_at    INTEGER NOT NULL DEFAULT 0,
    disable_at INTEGER NOT NULL DEFAULT 0,
    delete_at  INTEGER NOT NULL DEFAULT 0,
    disabled   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX discovered_hosts_rule ON discovered_hosts (rule_item);
CREATE INDEX discovered_hosts_def ON discovered_hosts (def_id);
CREATE INDEX discovered_hosts_lost ON discovered_hosts (lost_at) WHERE lost_at > 0;

-- +goose Down
DELETE FROM triggers WHERE rule_item IS NOT NULL;
DROP INDEX triggers_lost;
DROP INDEX triggers_rule_item;
ALTER TABLE triggers DROP COLUMN disabled;
ALTER TABLE triggers DROP COLUMN delete_at;
ALTER TABLE triggers DROP COLUMN disable_at;
ALTER TABLE triggers DROP COLUMN lost_at;
ALTER TABLE triggers DROP COLUMN changes;
ALTER TABLE triggers DROP COLUMN rule_item;
DROP TABLE discovered_hosts;
DROP TABLE discovered_items;
DROP TABLE rule_items;
DROP TABLE graphs;
DROP TABLE rule_prototypes;
DELETE FROM meta WHERE name = 'rules_inherited';

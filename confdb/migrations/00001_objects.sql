-- +goose Up
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta (name, value) VALUES ('revision', 0);

-- kind: 0 host group, 1 template group.
CREATE TABLE object_groups (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    uuid TEXT NOT NULL DEFAULT '',
    UNIQUE (kind, name)
) STRICT;

-- tags, macros, interfaces and extra are JSON; '' is none.
CREATE TABLE hosts (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    host        TEXT NOT NULL UNIQUE,
    name        TEXT NOT NULL,
    uuid        TEXT NOT NULL DEFAULT '',
    enabled     INTEGER NOT NULL DEFAULT 1,
    description TEXT NOT NULL DEFAULT '',
    metadata    TEXT NOT NULL DEFAULT '',
    tags        TEXT NOT NULL DEFAULT '',
    macros      TEXT NOT NULL DEFAULT '',
    interfaces  TEXT NOT NULL DEFAULT '',
    extra       TEXT NOT NULL DEFAULT '',
    revision    INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX hosts_revision ON hosts (revision);

CREATE TABLE deleted_hosts (
    host_id  INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL
) STRICT;

CREATE TABLE templates (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    template    TEXT NOT NULL UNIQUE,
    name        TEXT NOT NULL,
    uuid        TEXT NOT NULL DEFAULT '',
    description TEXT NOT NULL DEFAULT '',
    tags        TEXT NOT NULL DEFAULT '',
    macros      TEXT NOT NULL DEFAULT '',
    extra       TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX templates_uuid ON templates (uuid) WHERE uuid <> '';

CREATE TABLE host_groups (
    host_id  INTEGER NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    group_id INTEGER NOT NULL REFERENCES object_groups (id),
    PRIMARY KEY (host_id, group_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE template_groups (
    template_id INTEGER NOT NULL REFERENCES templates (id) ON DELETE CASCADE,
    group_id    INTEGER NOT NULL REFERENCES object_groups (id),
    PRIMARY KEY (template_id, group_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE host_templates (
    host_id     INTEGER NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    template_id INTEGER NOT NULL REFERENCES templates (id) ON DELETE CASCADE,
    PRIMARY KEY (host_id, template_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX host_templates_template ON host_templates (template_id);

CREATE TABLE template_links (
    template_id INTEGER NOT NULL REFERENCES templates (id) ON DELETE CASCADE,
    parent_id   INTEGER NOT NULL REFERENCES templates (id) ON DELETE CASCADE,
    PRIMARY KEY (template_id, parent_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE global_macros (
    name   TEXT PRIMARY KEY,
    value  TEXT NOT NULL,
    secret INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE value_maps (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    host_id     INTEGER REFERENCES hosts (id) ON DELETE CASCADE,
    template_id INTEGER REFERENCES templates (id) ON DELETE CASCADE,
    uuid        TEXT NOT NULL DEFAULT '',
    name        TEXT NOT NULL,
    mappings    TEXT NOT NULL
) STRICT;
CREATE INDEX value_maps_host ON value_maps (host_id) WHERE host_id IS NOT NULL;
CREATE INDEX value_maps_template ON value_maps (template_id) WHERE template_id IS NOT NULL;

CREATE TABLE discovery_rules (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    host_id     INTEGER REFERENCES hosts (id) ON DELETE CASCADE,
    template_id INTEGER REFERENCES templates (id) ON DELETE CASCADE,
    uuid        TEXT NOT NULL DEFAULT '',
    key         TEXT NOT NULL,
    name        TEXT NOT NULL,
    body        TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX discovery_rules_host ON discovery_rules (host_id) WHERE host_id IS NOT NULL;
CREATE INDEX discovery_rules_template ON discovery_rules (template_id) WHERE template_id IS NOT NULL;

-- A row is one of: a template's item (template_id), a host's own item (host_id, item_id), a host's inherited item
-- (host_id, item_id, def_id: the template's row; the other columns stay empty), or a prototype of either owner
-- (rule_id, no item_id).
CREATE TABLE items (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    item_id     INTEGER,
    host_id     INTEGER REFERENCES hosts (id) ON DELETE CASCADE,
    template_id INTEGER REFERENCES templates (id) ON DELETE CASCADE,
    rule_id     INTEGER REFERENCES discovery_rules (id) ON DELETE CASCADE,
    def_id      INTEGER REFERENCES items (id) ON DELETE CASCADE,
    uuid        TEXT NOT NULL DEFAULT '',
    key         TEXT NOT NULL DEFAULT '',
    name        TEXT NOT NULL DEFAULT '',
    type        INTEGER NOT NULL DEFAULT 0,
    value_type  INTEGER NOT NULL DEFAULT 0,
    enabled     INTEGER NOT NULL DEFAULT 1,
    delay       TEXT NOT NULL DEFAULT '',
    history     TEXT NOT NULL DEFAULT '',
    trends      TEXT NOT NULL DEFAULT '',
    units       TEXT NOT NULL DEFAULT '',
    description TEXT NOT NULL DEFAULT '',
    steps       TEXT NOT NULL DEFAULT '',
    tags        TEXT NOT NULL DEFAULT '',
    extra       TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX items_host ON items (host_id) WHERE host_id IS NOT NULL;
CREATE INDEX items_template ON items (template_id) WHERE template_id IS NOT NULL;
CREATE INDEX items_rule ON items (rule_id) WHERE rule_id IS NOT NULL;
CREATE INDEX items_def ON items (def_id) WHERE def_id IS NOT NULL;
CREATE UNIQUE INDEX items_item ON items (item_id) WHERE item_id IS NOT NULL;

-- Rows as in items. instance is, for a trigger made from a prototype for a declared item, the JSON of the discovery
-- macros that it was made with.
CREATE TABLE triggers (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    host_id       INTEGER REFERENCES hosts (id) ON DELETE CASCADE,
    template_id   INTEGER REFERENCES templates (id) ON DELETE CASCADE,
    rule_id       INTEGER REFERENCES discovery_rules (id) ON DELETE CASCADE,
    def_id        INTEGER REFERENCES triggers (id) ON DELETE CASCADE,
    instance      TEXT NOT NULL DEFAULT '',
    uuid          TEXT NOT NULL DEFAULT '',
    name          TEXT NOT NULL DEFAULT '',
    event_name    TEXT NOT NULL DEFAULT '',
    opdata        TEXT NOT NULL DEFAULT '',
    expression    TEXT NOT NULL DEFAULT '',
    recovery      TEXT NOT NULL DEFAULT '',
    recovery_mode INTEGER NOT NULL DEFAULT 0,
    severity      INTEGER NOT NULL DEFAULT 0,
    enabled       INTEGER NOT NULL DEFAULT 1,
    multiple      INTEGER NOT NULL DEFAULT 0,
    manual_close  INTEGER NOT NULL DEFAULT 0,
    comments      TEXT NOT NULL DEFAULT '',
    url           TEXT NOT NULL DEFAULT '',
    tags          TEXT NOT NULL DEFAULT '',
    extra         TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX triggers_host ON triggers (host_id) WHERE host_id IS NOT NULL;
CREATE INDEX triggers_template ON triggers (template_id) WHERE template_id IS NOT NULL;
CREATE INDEX triggers_rule ON triggers (rule_id) WHERE rule_id IS NOT NULL;
CREATE INDEX triggers_def ON triggers (def_id) WHERE def_id IS NOT NULL;

-- Between definitions: rows of templates, hosts' own triggers and prototypes, never inherited rows.
CREATE TABLE trigger_dependencies (
    trigger_id INTEGER NOT NULL REFERENCES triggers (id) ON DELETE CASCADE,
    depends_on INTEGER NOT NULL REFERENCES triggers (id) ON DELETE CASCADE,
    PRIMARY KEY (trigger_id, depends_on)
) STRICT, WITHOUT ROWID;
CREATE INDEX trigger_dependencies_on ON trigger_dependencies (depends_on);

-- +goose Down
DROP TABLE trigger_dependencies;
DROP TABLE triggers;
DROP TABLE items;
DROP TABLE discovery_rules;
DROP TABLE value_maps;
DROP TABLE global_macros;
DROP TABLE template_links;
DROP TABLE host_templates;
DROP TABLE template_groups;
DROP TABLE host_groups;
DROP TABLE templates;
DROP TABLE deleted_hosts;
DROP TABLE hosts;
DROP TABLE object_groups;
DROP TABLE meta;

CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE object_groups (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    uuid TEXT NOT NULL DEFAULT '',
    UNIQUE (kind, name)
) STRICT;
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
CREATE TABLE trigger_dependencies (
    trigger_id INTEGER NOT NULL REFERENCES triggers (id) ON DELETE CASCADE,
    depends_on INTEGER NOT NULL REFERENCES triggers (id) ON DELETE CASCADE,
    PRIMARY KEY (trigger_id, depends_on)
) STRICT, WITHOUT ROWID;
CREATE INDEX trigger_dependencies_on ON trigger_dependencies (depends_on);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (1, 1);
INSERT INTO meta (name, value) VALUES ('revision', 7);
INSERT INTO object_groups (kind, name) VALUES (0, 'Servers');
INSERT INTO templates (template, name, macros) VALUES ('T', 'T', '[{"n":"{$M}","v":"5"}]');
INSERT INTO hosts (host, name, tags, revision) VALUES ('h', 'Host', '[["a","b"]]', 7);
INSERT INTO host_groups (host_id, group_id) VALUES (1, 1);
INSERT INTO host_templates (host_id, template_id) VALUES (1, 1);
INSERT INTO items (template_id, key, name, type, value_type, delay, history, trends, steps) VALUES (1, 'k', 'Key', 2, 0, '0', '7d', '0', '[{"t":1,"p":["8"]}]');
INSERT INTO items (item_id, host_id, def_id) VALUES (41, 1, 1);
INSERT INTO triggers (template_id, name, expression, severity) VALUES (1, 'High', 'last(/T/k)>{$M}', 4);
INSERT INTO triggers (host_id, def_id) VALUES (1, 1);

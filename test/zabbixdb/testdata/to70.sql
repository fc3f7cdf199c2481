-- Makes of the tables of Zabbix 6.0, with what hosts.sql and people.sql put there, those of 7.0, as far as an import reads them: what the upgrades of 6.2, 6.4 and
-- 7.0 add, rename and move. Written from which tables and columns both versions have; PostgreSQL only.

-- 6.2: host groups and template groups are two kinds, each with its own names.
ALTER TABLE hstgrp ADD type integer DEFAULT 0 NOT NULL;
DROP INDEX hstgrp_1;
CREATE UNIQUE INDEX hstgrp_1 ON hstgrp (type, name);
INSERT INTO hstgrp (groupid, name, type) VALUES (9900101, 'Databases/PostgreSQL', 1);
UPDATE hosts_groups SET groupid = 9900101 WHERE hostid IN (SELECT hostid FROM hosts WHERE status = 3);
ALTER TABLE host_tag ADD automatic integer DEFAULT 0 NOT NULL;
ALTER TABLE hostmacro ADD automatic integer DEFAULT 0 NOT NULL;
ALTER TABLE hosts_templates ADD link_type integer DEFAULT 0 NOT NULL;
ALTER TABLE hosts ADD vendor_name varchar(64) DEFAULT '' NOT NULL, ADD vendor_version varchar(32) DEFAULT '' NOT NULL;
ALTER TABLE actions ADD pause_symptoms integer DEFAULT 1 NOT NULL;
ALTER TABLE triggers ADD url_name varchar(64) DEFAULT '' NOT NULL;
CREATE TABLE host_rtdata (hostid bigint PRIMARY KEY REFERENCES hosts, active_available integer DEFAULT 0 NOT NULL);

-- 6.4: scripts of media types have parameters of their own, users may be without a role or come from a directory.
ALTER TABLE media_type_param ADD sortorder integer DEFAULT 0 NOT NULL;
INSERT INTO media_type_param (mediatype_paramid, mediatypeid, name, value, sortorder) VALUES (9900101, 9900002, '', '{ALERT.SENDTO}', 0), (9900102, 9900002, '', '{ALERT.MESSAGE}', 1);
ALTER TABLE media_type DROP exec_params, ADD provider integer DEFAULT 0 NOT NULL;
ALTER TABLE users ALTER roleid DROP NOT NULL, ADD userdirectoryid bigint NULL, ADD ts_provisioned integer DEFAULT 0 NOT NULL;
ALTER TABLE interface_snmp ADD max_repetitions integer DEFAULT 10 NOT NULL;

-- 7.0: proxies have a table, hosts say what monitors them.
CREATE TABLE proxy_group (proxy_groupid bigint PRIMARY KEY, name varchar(255) DEFAULT '' NOT NULL, description text DEFAULT '' NOT NULL, failover_delay varchar(255) DEFAULT '1m' NOT NULL, min_online varchar(255) DEFAULT '1' NOT NULL);
CREATE TABLE proxy (proxyid bigint PRIMARY KEY, name varchar(128) DEFAULT '' NOT NULL, operating_mode integer DEFAULT 0 NOT NULL, description text DEFAULT '' NOT NULL, tls_connect integer DEFAULT 1 NOT NULL, tls_accept integer DEFAULT 1 NOT NULL,
	tls_issuer varchar(1024) DEFAULT '' NOT NULL, tls_subject varchar(1024) DEFAULT '' NOT NULL, tls_psk_identity varchar(128) DEFAULT '' NOT NULL, tls_psk varchar(512) DEFAULT '' NOT NULL, allowed_addresses varchar(255) DEFAULT '' NOT NULL,
	address varchar(255) DEFAULT '127.0.0.1' NOT NULL, port varchar(64) DEFAULT '10051' NOT NULL, custom_timeouts integer DEFAULT 0 NOT NULL, proxy_groupid bigint NULL REFERENCES proxy_group, local_address varchar(255) DEFAULT '' NOT NULL, local_port varchar(64) DEFAULT '10051' NOT NULL);
CREATE TABLE host_proxy (hostproxyid bigint PRIMARY KEY, hostid bigint NULL REFERENCES hosts, host varchar(128) NULL, proxyid bigint NULL REFERENCES proxy, revision bigint DEFAULT 0 NOT NULL, tls_accept integer DEFAULT 1 NOT NULL);
INSERT INTO proxy (proxyid, name, operating_mode, description, tls_connect, tls_accept, tls_psk_identity, tls_psk)
	SELECT hostid, host, status - 5, description, tls_connect, tls_accept, tls_psk_identity, tls_psk FROM hosts WHERE status IN (5, 6);
UPDATE proxy SET address = i.dns, port = i.port FROM interface i WHERE i.hostid = proxyid;
DELETE FROM interface WHERE hostid IN (SELECT proxyid FROM proxy);
ALTER TABLE hosts ADD proxyid bigint NULL REFERENCES proxy, ADD proxy_groupid bigint NULL REFERENCES proxy_group, ADD monitored_by integer DEFAULT 0 NOT NULL;
UPDATE hosts SET proxyid = proxy_hostid, monitored_by = 1 WHERE proxy_hostid IS NOT NULL;
ALTER TABLE hosts DROP proxy_hostid, DROP proxy_address, DROP auto_compress, DROP lastaccess;
ALTER TABLE drules DROP proxy_hostid;
ALTER TABLE autoreg_host DROP proxy_hostid;
ALTER TABLE task DROP proxy_hostid;
DELETE FROM hosts WHERE status IN (5, 6);

-- 7.0: how long what discovery does not find any more stays, timeouts of items, values of another kind, sets of groups for rights, second factors.
ALTER TABLE items ALTER lifetime SET DEFAULT '7d', ADD lifetime_type integer DEFAULT 0 NOT NULL, ADD enabled_lifetime_type integer DEFAULT 2 NOT NULL, ADD enabled_lifetime varchar(255) DEFAULT '0' NOT NULL;
UPDATE items SET timeout = '' WHERE type NOT IN (19, 21);
CREATE TABLE item_rtname (itemid bigint PRIMARY KEY REFERENCES items, name_resolved varchar(2048) DEFAULT '' NOT NULL, name_resolved_upper varchar(2048) DEFAULT '' NOT NULL);
ALTER TABLE item_discovery ADD status integer DEFAULT 0 NOT NULL, ADD disable_source integer DEFAULT 0 NOT NULL, ADD ts_disable integer DEFAULT 0 NOT NULL;
CREATE TABLE history_bin (itemid bigint NOT NULL, clock integer DEFAULT 0 NOT NULL, ns integer DEFAULT 0 NOT NULL, value bytea DEFAULT '' NOT NULL, PRIMARY KEY (itemid, clock, ns));
ALTER TABLE media_type RENAME content_type TO message_format;
CREATE TABLE ugset (ugsetid bigint PRIMARY KEY, hash varchar(64) DEFAULT '' NOT NULL);
CREATE TABLE hgset (hgsetid bigint PRIMARY KEY, hash varchar(64) DEFAULT '' NOT NULL);
CREATE TABLE permission (ugsetid bigint NOT NULL REFERENCES ugset, hgsetid bigint NOT NULL REFERENCES hgset, permission integer DEFAULT 2 NOT NULL, PRIMARY KEY (ugsetid, hgsetid));
CREATE TABLE mfa (mfaid bigint PRIMARY KEY, type integer DEFAULT 0 NOT NULL, name varchar(128) DEFAULT '' NOT NULL);
ALTER TABLE usrgrp ADD mfa_status integer DEFAULT 0 NOT NULL, ADD mfaid bigint NULL REFERENCES mfa;
UPDATE dbversion SET mandatory = 7000000, optional = 7000000;

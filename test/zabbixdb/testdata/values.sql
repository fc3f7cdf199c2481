-- What a real server of Zabbix 6.0 needs to start, and a host with an item of each type of value.
INSERT INTO hstgrp (groupid, name) VALUES (5, 'Discovered hosts');
INSERT INTO config (configid, alert_usrgrpid, discovery_groupid, dbversion_status) VALUES (1, NULL, 5, '');
INSERT INTO config_autoreg_tls (autoreg_tlsid, tls_psk_identity, tls_psk) VALUES (1, '', '');
INSERT INTO hosts (hostid, host, name, status, flags, description) VALUES (9900001, 'values-1', 'Values', 0, 0, '');
INSERT INTO hosts_groups (hostgroupid, hostid, groupid) VALUES (9900001, 9900001, 5);
INSERT INTO items (itemid, type, hostid, name, key_, delay, history, trends, status, value_type, flags, description, params, posts, headers) VALUES
(9900001, 2, 9900001, 'Float', 'float', '0', '90d', '365d', 0, 0, 0, '', '', '', ''), (9900002, 2, 9900001, 'Uint', 'uint', '0', '90d', '365d', 0, 3, 0, '', '', '', ''),
(9900003, 2, 9900001, 'Char', 'char', '0', '90d', '0', 0, 1, 0, '', '', '', ''), (9900004, 2, 9900001, 'Log', 'log', '0', '90d', '0', 0, 2, 0, '', '', '', ''),
(9900005, 2, 9900001, 'Text', 'text', '0', '90d', '0', 0, 4, 0, '', '', '', ''), (9900006, 2, 9900001, 'Own', 'own', '0', '90d', '365d', 0, 3, 0, '', '', '', '');
INSERT INTO item_rtdata (itemid) VALUES (9900001), (9900002), (9900003), (9900004), (9900005), (9900006);
INSERT INTO role (roleid, name, type, readonly) VALUES (3, 'Super admin role', 3, 1);
INSERT INTO users (userid, username, name, surname, passwd, url, roleid) VALUES (1, 'chief', '', '', '', '', 3);

-- What only a Zabbix 7.0 has: a host of a proxy group, items of new kinds, lifetimes, a user without a role, a second factor.
INSERT INTO proxy_group (proxy_groupid, name) VALUES (9900201, 'branches');
INSERT INTO proxy (proxyid, name, proxy_groupid) VALUES (9900201, 'branch-3', 9900201), (9900202, 'branch-4', 9900201);
INSERT INTO hosts (hostid, host, name, status, description, monitored_by, proxy_groupid) VALUES (9900201, 'grouped-1', 'Grouped', 0, '', 2, 9900201);
INSERT INTO hosts_groups (hostgroupid, hostid, groupid) VALUES (9900201, 9900201, 9900001);
INSERT INTO host_proxy (hostproxyid, hostid, host, proxyid) VALUES (9900201, 9900201, NULL, 9900202);
INSERT INTO items (itemid, type, hostid, name, key_, delay, history, trends, value_type, flags, description, params, posts, headers, timeout, lifetime, lifetime_type, enabled_lifetime_type, enabled_lifetime, master_itemid) VALUES
(9900201, 22, 9900201, 'Browser', 'browser', '1m', '7d', '0', 4, 0, '', 'return 1;', '', '', '30s', '7d', 0, 2, '0', NULL), (9900202, 18, 9900201, 'Picture', 'picture', '0', '7d', '0', 5, 0, '', '', '', '', '', '7d', 0, 2, '0', 9900201),
(9900203, 0, 9900201, 'Slow', 'slow', '1m', '31d', '365d', 0, 0, '', '', '', '', '20s', '7d', 0, 2, '0', NULL), (9900204, 2, 9900201, 'Rule', 'rule', '0', '90d', '0', 4, 1, '', '', '', '', '', '12h', 0, 0, '2h', NULL);
INSERT INTO item_preproc (item_preprocid, itemid, step, type, params, error_handler, error_handler_params) VALUES (9900201, 9900203, 1, 26, '1
refused', 1, '');
INSERT INTO users (userid, username, name, surname, passwd, url, roleid, userdirectoryid) VALUES (9900201, 'directory', '', '', '', '', NULL, 1);
INSERT INTO mfa (mfaid, type, name) VALUES (9900201, 1, 'codes');
UPDATE usrgrp SET mfa_status = 1, mfaid = 9900201 WHERE usrgrpid = 9900001;
INSERT INTO history_bin (itemid, clock, ns, value) VALUES (9900202, 1767225600, 1, '\x00ff');

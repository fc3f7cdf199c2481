-- Two hosts with one of everything, as the frontend of Zabbix 6.0 writes them. The rows that a host inherits from its template are not here, but
-- for the one whose trigger another trigger depends on.
INSERT INTO hosts (hostid, host, name, status, flags, description, tls_connect, tls_accept, tls_psk_identity, tls_psk, ipmi_authtype, ipmi_username, ipmi_password)
VALUES (9900001, 'db-1', 'Database größer', 0, 0, 'line 1
line 2', 2, 2, 'db-1 identity', '0123456789abcdef0123456789abcdef', 2, 'root', 'calvin'),
(9900002, 'web-1', 'web-1', 1, 0, '', 1, 1, '', '', -1, '', '');
INSERT INTO hosts (hostid, host, name, status, flags, description) VALUES (9900003, 'made-1', 'made-1', 0, 4, '');
INSERT INTO hosts (hostid, host, name, status, flags, description) VALUES (9900010, 'Base', 'Base', 3, 0, ''), (9900009, 'Derived', 'Derived', 3, 0, '');
INSERT INTO hosts_templates (hosttemplateid, hostid, templateid) VALUES (9900001, 9900009, 9900010), (9900002, 9900001, 9900009);
INSERT INTO hstgrp (groupid, name) VALUES (9900001, 'Databases/PostgreSQL');
INSERT INTO hosts_groups (hostgroupid, hostid, groupid) VALUES (9900001, 9900001, 9900001), (9900002, 9900002, 9900001), (9900003, 9900010, 9900001), (9900004, 9900009, 9900001);
INSERT INTO host_tag (hosttagid, hostid, tag, value) VALUES (9900001, 9900001, 'team', 'data');
INSERT INTO hostmacro (hostmacroid, hostid, macro, value, description, type) VALUES
(9900001, 9900001, '{$LIMIT}', '80', 'percent', 0), (9900002, 9900001, '{$PASSWORD}', 'geheim', '', 1), (9900003, 9900001, '{$VAULT}', 'path:key', '', 2);
INSERT INTO globalmacro (globalmacroid, macro, value, description, type) VALUES (9900001, '{$SITE}', 'Berlin', '', 0), (9900002, '{$TOKEN}', 'hidden', '', 1);
INSERT INTO host_inventory (hostid, inventory_mode, os, location, type, type_full, name, alias, software_full, hardware_full, contact, notes, host_networks, site_notes, poc_1_notes, poc_2_notes)
VALUES (9900001, 0, 'Debian', 'rack 4', '', '', '', '', '', '', '', '', '', '', '', '');
INSERT INTO interface (interfaceid, hostid, main, type, useip, ip, dns, port) VALUES
(9900002, 9900001, 0, 1, 1, '192.0.2.9', '', '10050'), (9900003, 9900001, 1, 1, 1, '192.0.2.1', 'db-1.example', '10050'), (9900004, 9900001, 1, 2, 0, '192.0.2.1', 'snmp.example', '161');
INSERT INTO interface_snmp (interfaceid, version, bulk, community, securityname, securitylevel, authpassphrase, privpassphrase, authprotocol, privprotocol, contextname)
VALUES (9900004, 3, 1, '', 'monitor', 2, 'auth-pass', 'priv-pass', 1, 1, 'ctx');
INSERT INTO valuemap (valuemapid, hostid, name) VALUES (9900001, 9900001, 'State');
INSERT INTO valuemap_mapping (valuemap_mappingid, valuemapid, value, newvalue, type, sortorder) VALUES (9900001, 9900001, '1', 'up', 0, 0), (9900002, 9900001, '', 'else', 5, 1);
INSERT INTO items (itemid, type, hostid, name, key_, delay, history, trends, status, value_type, flags, units, interfaceid, valuemapid, description, params, posts, headers, query_fields, master_itemid, url, snmp_oid) VALUES
(9900001, 2, 9900001, 'State', 'state', '0', '7d', '365d', 0, 3, 0, '', NULL, 9900001, 'what it is', '', '', '', '', NULL, '', ''),
(9900002, 18, 9900001, 'Half', 'half', '0', '31d', '0', 0, 0, 0, 'B', NULL, NULL, '', '', '', '', '', 9900001, '', ''),
(9900003, 19, 9900001, 'Page', 'page', '2m', '7d', '0', 1, 4, 0, '', NULL, NULL, '', '', '', 'X-A: 1
X-B: 2', '[{"q":"x"},{"r":"y"}]', NULL, 'http://192.0.2.1/', ''),
(9900004, 20, 9900001, 'Uptime', 'uptime', '1m', '7d', '365d', 0, 3, 0, '', 9900004, NULL, '', '', '', '', '', NULL, '', '1.3.6.1.2.1.1.3.0'),
(9900005, 2, 9900002, 'Load', 'load', '0', '7d', '365d', 0, 0, 0, '', NULL, NULL, '', '', '', '', '', NULL, '', ''),
(9900006, 2, 9900001, 'Disks', 'disks', '0', '90d', '0', 0, 4, 1, '', NULL, NULL, '', '', '', '', '', NULL, '', ''),
(9900007, 2, 9900001, 'Used of {#DISK}', 'used[{#DISK}]', '0', '7d', '365d', 0, 0, 2, '%', NULL, NULL, '', '', '', '', '', NULL, '', ''),
(9900008, 2, 9900001, 'Used of sda', 'used[sda]', '0', '7d', '365d', 0, 0, 4, '%', NULL, NULL, '', '', '', '', '', NULL, '', ''),
(9900010, 2, 9900010, 'Queue', 'queue', '0', '7d', '365d', 0, 3, 0, '', NULL, NULL, '', '', '', '', '', NULL, '', '');
INSERT INTO items (itemid, type, hostid, name, key_, delay, history, trends, status, value_type, flags, templateid, description, params, posts, headers) VALUES
(9900011, 2, 9900009, 'Queue', 'queue', '0', '7d', '365d', 0, 3, 0, 9900010, '', '', '', ''), (9900012, 2, 9900001, 'Queue', 'queue', '0', '7d', '365d', 1, 3, 0, 9900011, '', '', '', '');
UPDATE items SET lifetime = '7d', evaltype = 3, formula = 'not ({9900002} or {9900001})' WHERE itemid = 9900006;
INSERT INTO item_discovery (itemdiscoveryid, itemid, parent_itemid) VALUES (9900001, 9900007, 9900006), (9900002, 9900008, 9900007);
INSERT INTO item_tag (itemtagid, itemid, tag, value) VALUES (9900001, 9900001, 'component', 'state');
INSERT INTO item_preproc (item_preprocid, itemid, step, type, params, error_handler, error_handler_params) VALUES
(9900001, 9900002, 1, 21, 'var half = value / 2;
return half;', 0, ''), (9900002, 9900002, 2, 13, '0
100', 2, '-1'), (9900003, 9900002, 3, 20, '10m', 0, '');
INSERT INTO item_condition (item_conditionid, itemid, operator, macro, value) VALUES (9900001, 9900006, 8, '{#DISK}', '^loop'), (9900002, 9900006, 13, '{#TYPE}', '');
INSERT INTO lld_macro_path (lld_macro_pathid, itemid, lld_macro, path) VALUES (9900001, 9900006, '{#DISK}', '$.disk');
INSERT INTO lld_override (lld_overrideid, itemid, name, step, evaltype, formula, stop) VALUES (9900001, 9900006, 'big ones', 1, 0, '', 1);
INSERT INTO lld_override_condition (lld_override_conditionid, lld_overrideid, operator, macro, value) VALUES (9900001, 9900001, 8, '{#DISK}', '^sd');
INSERT INTO lld_override_operation (lld_override_operationid, lld_overrideid, operationobject, operator, value) VALUES (9900001, 9900001, 1, 2, 'full');
INSERT INTO lld_override_opseverity (lld_override_operationid, severity) VALUES (9900001, 5);
INSERT INTO triggers (triggerid, expression, description, url, status, priority, comments, type, flags, recovery_mode, recovery_expression, manual_close, opdata, event_name) VALUES
(9900001, '{9900001}>{$LIMIT} and {9900002}=0', 'Trouble', '', 0, 4, 'call somebody', 0, 0, 1, '{9900003}<5', 1, 'now {ITEM.LASTVALUE1}', ''),
(9900002, '{9900004}>90', 'Disk {#DISK} is full', '', 0, 2, '', 0, 2, 0, '', 0, '', ''),
(9900003, '{9900005}>5', 'Load', '', 0, 3, '', 1, 0, 0, '', 0, '', ''),
(9900010, '{9900010}>100', 'Queue is long', '', 0, 2, '', 0, 0, 0, '', 0, '', '');
INSERT INTO triggers (triggerid, expression, description, comments, templateid) VALUES (9900011, '{9900011}>100', 'Queue is long', '', 9900010), (9900012, '{9900012}>100', 'Queue is long', '', 9900011);
INSERT INTO functions (functionid, itemid, triggerid, name, parameter) VALUES
(9900001, 9900001, 9900001, 'avg', '$,5m:now-1h'), (9900002, 9900005, 9900001, 'nodata', '$,30s'), (9900003, 9900001, 9900001, 'last', '$'), (9900004, 9900007, 9900002, 'last', '$,#3'),
(9900005, 9900005, 9900003, 'last', '$'), (9900010, 9900010, 9900010, 'last', '$'), (9900011, 9900011, 9900011, 'last', '$'), (9900012, 9900012, 9900012, 'last', '$');
INSERT INTO trigger_depends (triggerdepid, triggerid_down, triggerid_up) VALUES (9900001, 9900003, 9900001);
INSERT INTO trigger_tag (triggertagid, triggerid, tag, value) VALUES (9900001, 9900001, 'scope', 'availability');
INSERT INTO httptest (httptestid, name, delay, status, agent, authentication, http_user, http_password, hostid, templateid, http_proxy, retries, ssl_cert_file, ssl_key_file, ssl_key_password, verify_peer, verify_host, uuid) VALUES
(9900001, 'Shop', '5m', 0, 'Mozilla/5.0', 1, 'buyer', 'secret', 9900001, NULL, '', 2, '', '', '', 1, 1, ''), (9900002, 'Idle', '1m', 1, 'Zabbix', 0, '', '', 9900010, NULL, '', 1, '', '', '', 0, 0, ''),
(9900003, 'Idle', '1m', 1, 'Zabbix', 0, '', '', 9900009, 9900002, '', 1, '', '', '', 0, 0, '');
INSERT INTO httpstep (httpstepid, httptestid, name, no, url, timeout, posts, required, status_codes, follow_redirects, retrieve_mode, post_type) VALUES
(9900001, 9900001, 'Enter', 2, 'https://shop.example/login', '10s', 'user=buyer', 'welcome', '200,302', 0, 2, 1), (9900002, 9900001, 'First', 1, 'https://shop.example/', '15s', 'raw body', '', '200', 1, 0, 0),
(9900003, 9900002, 'Only', 1, 'http://{HOST.CONN}/', '15s', '', '', '', 1, 1, 0), (9900004, 9900003, 'Only', 1, 'http://{HOST.CONN}/', '15s', '', '', '', 1, 1, 0);
INSERT INTO httptest_field (httptest_fieldid, httptestid, type, name, value) VALUES (9900001, 9900001, 0, 'X-Shop', 'yes'), (9900002, 9900001, 1, '{token}', 'none');
INSERT INTO httpstep_field (httpstep_fieldid, httpstepid, type, name, value) VALUES (9900001, 9900001, 2, 'user', 'buyer'), (9900002, 9900001, 2, 'empty', ''), (9900003, 9900001, 3, 'from', 'check'),
(9900004, 9900001, 1, '{token}', 'regex:name="t" value="([0-9a-f]+)"'), (9900005, 9900002, 0, 'Accept', 'text/html');
INSERT INTO httptest_tag (httptesttagid, httptestid, tag, value) VALUES (9900001, 9900001, 'component', 'shop');
INSERT INTO items (itemid, type, hostid, name, key_, delay, history, trends, status, value_type, flags, description, params, posts, headers) VALUES
(9900030, 9, 9900001, 'Failed step of scenario "Shop".', 'web.test.fail[Shop]', '5m', '7d', '365d', 0, 3, 0, '', '', '', '');
INSERT INTO triggers (triggerid, expression, description, url, status, priority, comments, type, flags, recovery_mode, recovery_expression, manual_close, opdata, event_name) VALUES
(9900020, '{9900020}<>0', 'The shop fails', '', 0, 4, '', 0, 0, 0, '', 0, '', '');
INSERT INTO functions (functionid, itemid, triggerid, name, parameter) VALUES (9900020, 9900030, 9900020, 'last', '$');

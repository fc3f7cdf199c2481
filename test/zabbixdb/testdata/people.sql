-- People, alerting, proxies and keys, as the frontend of Zabbix 6.0 writes them.
INSERT INTO hosts (hostid, host, name, status, flags, description, tls_connect, tls_accept, tls_psk_identity, tls_psk) VALUES
(9900020, 'branch-1', '', 5, 0, 'in Hamburg', 1, 2, 'branch-1 identity', 'fedcba9876543210fedcba9876543210'), (9900021, 'branch-2', '', 6, 0, '', 1, 1, '', '');
INSERT INTO interface (interfaceid, hostid, main, type, useip, ip, dns, port) VALUES (9900921, 9900021, 1, 0, 0, '', 'branch-2.example', '10051');
UPDATE hosts SET proxy_hostid = 9900020 WHERE hostid = 9900002;
INSERT INTO hstgrp (groupid, name) VALUES (9900002, 'Databases'), (9900003, 'Web'), (9900004, 'Web/Shop');
INSERT INTO role (roleid, name, type, readonly) VALUES (9900001, 'People', 1, 0), (9900002, 'Onlookers', 1, 0), (9900003, 'Admins', 2, 0), (9900004, 'Chiefs', 3, 0);
INSERT INTO role_rule (role_ruleid, roleid, type, name, value_int) VALUES (9900001, 9900002, 0, 'actions.acknowledge_problems', 0), (9900002, 9900001, 0, 'ui.monitoring.maps', 0);
INSERT INTO usrgrp (usrgrpid, name, gui_access, users_status) VALUES (9900001, 'Database people', 0, 0), (9900002, 'Web people', 0, 0), (9900003, 'Left us', 0, 1), (9900004, 'Not the shop', 0, 0);
INSERT INTO rights (rightid, groupid, permission, id) VALUES (9900001, 9900001, 3, 9900002), (9900002, 9900001, 3, 9900001), (9900003, 9900002, 2, 9900003),
(9900004, 9900004, 2, 9900003), (9900005, 9900004, 0, 9900004);
INSERT INTO users (userid, username, name, surname, passwd, url, roleid) VALUES
(9900001, 'dba', 'D', 'B', '$2y$10$wnQ1ug1Y9wCSV0P9Yv6dXe4WwDN5V2lMV0A8C3WzS1Vl2mBqT0n9q', '', 9900003), (9900002, 'web', '', '', '$2y$10$wnQ1ug1Y9wCSV0P9Yv6dXe4WwDN5V2lMV0A8C3WzS1Vl2mBqT0n9q', '', 9900001),
(9900003, 'gone', '', '', '$2y$10$wnQ1ug1Y9wCSV0P9Yv6dXe4WwDN5V2lMV0A8C3WzS1Vl2mBqT0n9q', '', 9900001), (9900004, 'looker', '', '', '', '', 9900002),
(9900005, 'chief', '', '', '$2y$10$wnQ1ug1Y9wCSV0P9Yv6dXe4WwDN5V2lMV0A8C3WzS1Vl2mBqT0n9q', '', 9900004), (9900006, 'denied', '', '', '5fce1b3e34b520afeffb37ce08c7cd66', '', 9900001);
INSERT INTO users_groups (id, usrgrpid, userid) VALUES (9900001, 9900001, 9900001), (9900002, 9900002, 9900002), (9900003, 9900003, 9900003), (9900004, 9900002, 9900004), (9900005, 9900004, 9900006), (9900006, 9900001, 9900005);
INSERT INTO token (tokenid, name, description, userid, token) VALUES (9900001, 'grafana', '', 9900001, NULL);
INSERT INTO media_type (mediatypeid, type, name, smtp_server, smtp_helo, smtp_email, exec_path, username, passwd, status, smtp_port, smtp_security, smtp_authentication, exec_params, maxsessions, maxattempts, attempt_interval, content_type, script, description) VALUES
(9900001, 0, 'Mail', 'mail.example', 'zabbix.example', 'zabbix@example.com', '', 'zabbix', 'mail-secret', 0, 587, 1, 1, '', 3, 5, '30s', 0, '', ''),
(9900002, 1, 'Pager', '', '', '', 'page.sh', '', '', 1, 25, 0, 0, '{ALERT.SENDTO}
{ALERT.MESSAGE}
', 1, 3, '10s', 1, '', ''), (9900003, 2, 'Modem', '', '', '', '', '', '', 0, 25, 0, 0, '', 1, 3, '10s', 1, '', ''), (9900004, 4, 'Unused hook', '', '', '', '', '', '', 0, 25, 0, 0, '', 1, 3, '10s', 1, 'return 1;', '');
INSERT INTO media_type_message (mediatype_messageid, mediatypeid, eventsource, recovery, subject, message) VALUES (9900001, 9900001, 0, 0, 'Problem: {EVENT.NAME}', 'since {EVENT.TIME}'), (9900002, 9900001, 0, 1, 'Over: {EVENT.NAME}', 'at {EVENT.RECOVERY.TIME}'), (9900003, 9900001, 1, 0, 'Found', '');
INSERT INTO media (mediaid, userid, mediatypeid, sendto, active, severity, period) VALUES (9900001, 9900001, 9900001, 'dba@example.com
dba@example.org', 0, 63, '1-7,00:00-24:00'), (9900002, 9900001, 9900002, '+49 1', 0, 48, '1-5,09:00-18:00'), (9900003, 9900002, 9900001, 'web@example.com', 1, 63, '{$TIMES}'),
(9900004, 9900003, 9900001, 'gone@example.com', 0, 63, '1-7,00:00-24:00'), (9900005, 9900005, 9900003, '+49 2', 0, 63, '1-7,00:00-24:00');
INSERT INTO actions (actionid, name, eventsource, evaltype, status, esc_period, formula, pause_suppressed, notify_if_canceled) VALUES
(9900001, 'Databases', 0, 3, 0, '10m', '({9900001} or {9900002}) and {9900003}', 0, 1), (9900002, 'Off there', 0, 0, 1, '1h', '', 1, 0), (9900003, 'One trigger', 0, 0, 0, '1h', '', 1, 1), (9900004, 'Found hosts', 1, 0, 0, '0', '', 1, 1);
INSERT INTO conditions (conditionid, actionid, conditiontype, operator, value, value2) VALUES (9900001, 9900001, 0, 0, '9900002', ''), (9900002, 9900001, 26, 2, 'data', 'team'), (9900003, 9900001, 4, 5, '3', ''),
(9900004, 9900002, 1, 0, '9900001', ''), (9900005, 9900002, 25, 1, 'test', ''), (9900006, 9900002, 16, 11, '', ''), (9900007, 9900003, 2, 0, '9900001', '');
INSERT INTO operations (operationid, actionid, operationtype, esc_period, esc_step_from, esc_step_to, recovery) VALUES (9900001, 9900001, 0, '0', 1, 1, 0), (9900002, 9900001, 0, '5m', 2, 0, 0), (9900003, 9900001, 1, '0', 1, 1, 0),
(9900004, 9900001, 11, '0', 1, 1, 1), (9900005, 9900001, 12, '0', 1, 1, 2), (9900006, 9900002, 0, '0', 1, 1, 0), (9900007, 9900003, 0, '0', 1, 1, 0);
INSERT INTO opmessage (operationid, default_msg, subject, message, mediatypeid) VALUES (9900001, 1, '', '', NULL), (9900002, 0, 'Still: {EVENT.NAME}', 'Look at it.', 9900002), (9900004, 1, '', '', NULL), (9900005, 1, '', '', NULL), (9900006, 1, '', '', 9900001), (9900007, 1, '', '', NULL);
INSERT INTO opmessage_grp (opmessage_grpid, operationid, usrgrpid) VALUES (9900001, 9900001, 9900001), (9900002, 9900002, 9900001), (9900003, 9900007, 9900001);
INSERT INTO opmessage_usr (opmessage_usrid, operationid, userid) VALUES (9900001, 9900006, 9900002), (9900002, 9900006, 9900003);
INSERT INTO opconditions (opconditionid, operationid, conditiontype, operator, value) VALUES (9900001, 9900002, 14, 0, '0');
INSERT INTO maintenances (maintenanceid, name, maintenance_type, description, active_since, active_till, tags_evaltype) VALUES (9900001, 'Nights', 0, '', 1767225600, 2114380800, 0), (9900002, 'Past', 1, '', 1600000000, 1600003600, 0);
INSERT INTO maintenances_hosts (maintenance_hostid, maintenanceid, hostid) VALUES (9900001, 9900001, 9900001);
INSERT INTO maintenances_groups (maintenance_groupid, maintenanceid, groupid) VALUES (9900001, 9900001, 9900003);
INSERT INTO maintenance_tag (maintenancetagid, maintenanceid, tag, operator, value) VALUES (9900001, 9900001, 'scope', 2, 'avail');
INSERT INTO timeperiods (timeperiodid, timeperiod_type, every, month, dayofweek, day, start_time, period, start_date) VALUES (9900001, 2, 2, 0, 0, 0, 81000, 7200, 0), (9900002, 3, 1, 0, 65, 0, 3600, 3600, 0),
(9900003, 4, 1, 4095, 0, 15, 0, 86400, 0), (9900004, 4, 5, 1, 16, 0, 0, 600, 0), (9900005, 0, 1, 0, 0, 0, 0, 3600, 1800000000);
INSERT INTO maintenances_windows (maintenance_timeperiodid, maintenanceid, timeperiodid) VALUES (9900001, 9900001, 9900001), (9900002, 9900001, 9900002), (9900003, 9900001, 9900003), (9900004, 9900001, 9900004), (9900005, 9900001, 9900005);

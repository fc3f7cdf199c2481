-- Beside values.sql: a trigger that both servers see, one whose item only Zabbix gets values of, and an action with all that it needs.
INSERT INTO triggers (triggerid, expression, description, url, status, priority, comments, type, flags, recovery_mode, recovery_expression, manual_close, opdata, event_name) VALUES
(9900001, '{9900001}>5', 'Both see it', '', 0, 4, '', 0, 0, 0, '', 0, '', ''), (9900002, '{9900002}>5', 'Only Zabbix sees it', '', 0, 3, '', 0, 0, 0, '', 0, '', '');
INSERT INTO functions (functionid, itemid, triggerid, name, parameter) VALUES (9900001, 9900002, 9900001, 'last', '$'), (9900002, 9900006, 9900002, 'last', '$');
INSERT INTO media_type (mediatypeid, type, name, smtp_server, smtp_helo, smtp_email, exec_path, username, passwd, status, smtp_port, exec_params, attempt_interval, script, description) VALUES
(9900001, 0, 'Mail', '127.0.0.1', 'x', 'zabbix@example.com', '', '', '', 0, 1, '', '10s', '', '');
INSERT INTO media (mediaid, userid, mediatypeid, sendto, active, severity, period) VALUES (9900001, 1, 9900001, 'chief@example.com', 0, 63, '1-7,00:00-24:00');
INSERT INTO actions (actionid, name, eventsource, evaltype, status, esc_period, formula) VALUES (9900001, 'Tell the chief', 0, 0, 0, '1h', '');
INSERT INTO operations (operationid, actionid, operationtype, esc_period, esc_step_from, esc_step_to, recovery) VALUES (9900001, 9900001, 0, '0', 1, 1, 0);
INSERT INTO opmessage (operationid, default_msg, subject, message, mediatypeid) VALUES (9900001, 1, '', '', NULL);
INSERT INTO opmessage_usr (opmessage_usrid, operationid, userid) VALUES (9900001, 9900001, 1);

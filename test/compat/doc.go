// Package compat tests the built binary against real peers from Debian's packages: zabbix_sender, zabbix_agentd and
// zabbix_agent2, with kill -9 of the server in the middle. install.sh installs the peers when they are missing, which
// needs root; the tests fail when it cannot.
//
// The binary is built by the tests, or named by TIDEMARK_BIN.
package compat

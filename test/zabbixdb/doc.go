// Package zabbixdb tests imports from the databases of real Zabbix servers.
package zabbixdb

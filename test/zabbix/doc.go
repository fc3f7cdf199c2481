// Package zabbix runs clients that were written for Zabbix's API against the whole binary. It holds tests only.
package zabbix

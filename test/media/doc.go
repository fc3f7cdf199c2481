// Package media tests the media types of real Zabbix servers, with their scripts, over the real binary against services that check what they
// are sent.
package media

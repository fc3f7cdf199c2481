#!/bin/sh
# Installs the client that the tests in this folder use: pyzabbix of Debian.
set -eu

client() { /usr/bin/python3 -c 'import pyzabbix' 2>/dev/null; }
client && exit 0

if [ "$(id -u)" != 0 ]; then
	echo "zabbix: missing package python3-pyzabbix; install it, or run the tests as root" >&2
	exit 1
fi
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt-get install -y -q --no-install-recommends python3-pyzabbix >"$log" 2>&1 || {
	apt-get update -q >>"$log" 2>&1 || true
	apt-get install -y -q --no-install-recommends python3-pyzabbix >>"$log" 2>&1 || {
		cat "$log" >&2
		echo "zabbix: cannot install python3-pyzabbix" >&2
		exit 1
	}
}
client || { echo "zabbix: python3-pyzabbix is not there after the installation" >&2; exit 1; }

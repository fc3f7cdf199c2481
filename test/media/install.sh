#!/bin/sh
# Unpacks Debian's package of Zabbix's server, whose tables hold the media types. Fetches only what is missing, starts no service, and fails when it
# is not there in the end.
set -eu

root=/var/cache/tidemark-test/zabbix
data=$root/usr/share/zabbix-server-pgsql/data.sql.gz
[ -s "$data" ] && exit 0
if [ "$(id -u)" != 0 ]; then
	echo "media: $data is missing; run this script as root" >&2
	exit 1
fi
mkdir -p "$root"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && { apt-get download -q zabbix-server-pgsql || { apt-get update -q && apt-get download -q zabbix-server-pgsql; }; }) >"$work/log" 2>&1 || {
	cat "$work/log" >&2
	echo "media: cannot download zabbix-server-pgsql" >&2
	exit 1
}
dpkg-deb -x "$work"/zabbix-server-pgsql_*.deb "$root"
[ -s "$data" ] || { echo "media: the package has no $data" >&2; exit 1; }

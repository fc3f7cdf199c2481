#!/bin/sh
# Installs what the tests of imports from Zabbix need, from Debian: PostgreSQL, MariaDB, and the schemas of Zabbix 6.0 for both. The packages of
# zabbix-server for the two databases exclude each other, so they are unpacked into a folder. Starts no service; fails when something is missing in the end.
set -eu

schemas=/var/cache/tidemark-test/zabbix
bash "$(dirname "$0")/../../storage/postgres/install-postgresql.sh"
bash "$(dirname "$0")/../collect/install.sh"
missing=""
for database in pgsql mysql; do
	[ -s "$schemas/usr/share/zabbix-server-$database/data.sql.gz" ] || missing="$missing $database"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" != 0 ]; then
	echo "zabbix: the schemas of Zabbix are missing in $schemas; run this script as root" >&2
	exit 1
fi
mkdir -p "$schemas"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for database in $missing; do
	package=zabbix-server-$database
	(cd "$work" && { apt-get download -q "$package" || { apt-get update -q && apt-get download -q "$package"; }; }) >"$work/log" 2>&1 || {
		cat "$work/log" >&2
		echo "zabbix: cannot download $package" >&2
		exit 1
	}
	dpkg-deb -x "$work/$package"_*.deb "$schemas"
	[ -s "$schemas/usr/share/$package/data.sql.gz" ] || { echo "zabbix: $package has no schema" >&2; exit 1; }
done

#!/bin/sh
# Installs what the tests of imports from Zabbix need, from Debian: PostgreSQL, MariaDB, and Zabbix 6.0 for both, schema and server. The packages of
# zabbix-server for the two databases exclude each other, so they are unpacked into a folder. Starts no service; fails when something is missing in the end.
set -eu

root=/var/cache/tidemark-test/zabbix
bash "$(dirname "$0")/../../storage/postgres/install-postgresql.sh"
bash "$(dirname "$0")/../collect/install.sh"
missing=""
[ -x /usr/bin/zabbix_sender ] || missing="$missing zabbix-sender"
for package in libcurl3-gnutls libevent-2.1-7 libevent-extra-2.1-7 libevent-pthreads-2.1-7 libgnutls30 libldap-2.5-0 libmariadb3 libodbc2 libopenipmi0 libpcre2-8-0 libpq5 libsnmp40 libssh2-1 libxml2; do
	dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
databases=""
for database in pgsql mysql; do
	[ -s "$root/usr/share/zabbix-server-$database/data.sql.gz" ] && [ -x "$root/usr/sbin/zabbix_server_$database" ] || databases="$databases $database"
done
[ -z "$missing$databases" ] && exit 0
if [ "$(id -u)" != 0 ]; then
	echo "zabbix: missing:$missing$databases in $root; run this script as root" >&2
	exit 1
fi
mkdir -p "$root/usr/sbin"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DEBIAN_FRONTEND=noninteractive
if [ -n "$missing" ]; then
	# shellcheck disable=SC2086
	{ apt-get install -y -q --no-install-recommends $missing || { apt-get update -q && apt-get install -y -q --no-install-recommends $missing; }; } >"$work/log" 2>&1 || {
		cat "$work/log" >&2
		echo "zabbix: cannot install$missing" >&2
		exit 1
	}
fi
for database in $databases; do
	package=zabbix-server-$database
	(cd "$work" && { apt-get download -q "$package" || { apt-get update -q && apt-get download -q "$package"; }; }) >"$work/log" 2>&1 || {
		cat "$work/log" >&2
		echo "zabbix: cannot download $package" >&2
		exit 1
	}
	# By way of a folder of its own: the server of test/conformance and test/proxy lies in $root by the name that both packages have.
	dpkg-deb -x "$work/$package"_*.deb "$work/$package"
	mv "$work/$package/usr/sbin/zabbix_server" "$root/usr/sbin/zabbix_server_$database"
	mkdir -p "$root/usr/share"
	cp -R "$work/$package/usr/share/$package" "$root/usr/share/"
	[ -s "$root/usr/share/$package/data.sql.gz" ] || { echo "zabbix: $package has no schema" >&2; exit 1; }
done

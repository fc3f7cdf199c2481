#!/bin/sh
# Unpacks the real zabbix_proxy, zabbix_agentd and zabbix_server of Debian beside the system, because the packages of Zabbix daemons exclude each
# other, and installs what they and the tests need. Fetches only what is missing, starts no service, and fails when something is not there in the end.
set -eu

root=/var/cache/tidemark-test/zabbix-proxy
log=$(mktemp)
dir=$(mktemp -d)
trap 'rm -rf "$log" "$dir"' EXIT

missing=""
for pair in /usr/bin/sqlite3:sqlite3 /usr/bin/zabbix_sender:zabbix-sender /usr/bin/fping:fping; do
	[ -x "${pair%%:*}" ] || missing="$missing ${pair#*:}"
done
libraries="libcurl3-gnutls libevent-2.1-7 libevent-extra-2.1-7 libevent-pthreads-2.1-7 libgnutls30 libldap-2.5-0 libodbc2 libopenipmi0 libpcre2-8-0 libsnmp40 libsqlite3-0 libssh2-1 libxml2 zlib1g"
for package in $libraries; do
	dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
bash "$(dirname "$0")/../conformance/install.sh" /var/cache/tidemark-test/zabbix >"$log" 2>&1 || {
	cat "$log" >&2
	exit 1
}
if [ -z "$missing" ] && [ -x "$root/usr/sbin/zabbix_proxy" ] && [ -x "$root/usr/sbin/zabbix_agentd" ]; then
	exit 0
fi
if [ "$(id -u)" != 0 ]; then
	echo "proxy: missing packages:$missing zabbix-proxy-sqlite3; install them, or run the tests as root" >&2
	exit 1
fi

export DEBIAN_FRONTEND=noninteractive
fetch() {
	if [ -n "$missing" ]; then
		# shellcheck disable=SC2086
		apt-get install -y -q --no-install-recommends $missing || return 1
	fi
	(cd "$dir" && apt-get download -q zabbix-proxy-sqlite3 zabbix-agent)
}
fetch >"$log" 2>&1 || {
	apt-get update -q >>"$log" 2>&1 || true
	fetch >>"$log" 2>&1 || {
		cat "$log" >&2
		echo "proxy: cannot install$missing and fetch zabbix-proxy-sqlite3 and zabbix-agent" >&2
		exit 1
	}
}
mkdir -p "$root"
dpkg-deb -x "$dir"/zabbix-proxy-sqlite3_*.deb "$root"
dpkg-deb -x "$dir"/zabbix-agent_*.deb "$root"
"$root/usr/sbin/zabbix_proxy" -V >/dev/null
"$root/usr/sbin/zabbix_agentd" -V >/dev/null

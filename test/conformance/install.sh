#!/bin/bash
# Unpacks Debian's Zabbix 6.0 server into a folder of its own ($1) and installs the libraries that it needs. The package itself
# is not installed: it would start a service and remove zabbix-proxy-sqlite3, which other tests need.
set -euo pipefail
folder=${1:?install.sh needs the folder to unpack into}
cd "$(dirname "$0")"
bash ../../storage/postgres/install-postgresql.sh
server="$folder/usr/sbin/zabbix_server"
if [ ! -x "$server" ]; then
	mkdir -p "$folder"
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	chmod 777 "$work"
	(cd "$work" && { apt-get download -q zabbix-server-pgsql || { apt-get update -q && apt-get download -q zabbix-server-pgsql; }; })
	dpkg -x "$work"/zabbix-server-pgsql_*.deb "$folder"
fi
if ldd "$server" | grep -q 'not found'; then
	if [ "$(id -u)" != 0 ]; then
		echo "install.sh: $server lacks libraries and only root can install them: $(ldd "$server" | grep 'not found' | tr '\n' ' ')" >&2
		exit 1
	fi
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
		libcurl3-gnutls libevent-2.1-7 libldap-2.5-0 libodbc2 libopenipmi0 libpcre2-8-0 libpq5 libsnmp40 libssh2-1 libxml2
fi
if ldd "$server" | grep -q 'not found'; then
	echo "install.sh: $server still lacks libraries: $(ldd "$server" | grep 'not found' | tr '\n' ' ')" >&2
	exit 1
fi

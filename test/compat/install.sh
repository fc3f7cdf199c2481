#!/bin/sh
# Installs the real peers that the tests in this folder talk to: zabbix_sender, zabbix_agentd and zabbix_agent2 from
# Debian. Installs only what is missing, starts no service, and fails when a peer is not there in the end.
set -eu

missing=""
command -v zabbix_sender >/dev/null 2>&1 || missing="$missing zabbix-sender"
[ -x /usr/sbin/zabbix_agentd ] || missing="$missing zabbix-agent"
[ -x /usr/sbin/zabbix_agent2 ] || missing="$missing zabbix-agent2"
command -v openssl >/dev/null 2>&1 || missing="$missing openssl"
[ -x /usr/lib/postgresql/15/bin/psql ] || missing="$missing postgresql-15"
[ -z "$missing" ] && exit 0

if [ "$(id -u)" != 0 ]; then
	echo "compat: missing packages:$missing; install them, or run the tests as root" >&2
	exit 1
fi

# A policy that forbids starting services, for as long as this script runs.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap 'rm -f "$policy"' EXIT
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
fi

export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
apt-get install -y -q --no-install-recommends $missing >/tmp/compat-install.$$ 2>&1 || {
	apt-get update -q >>/tmp/compat-install.$$ 2>&1 || true
	apt-get install -y -q --no-install-recommends $missing >>/tmp/compat-install.$$ 2>&1 || {
		cat /tmp/compat-install.$$ >&2
		echo "compat: cannot install$missing" >&2
		rm -f /tmp/compat-install.$$
		exit 1
	}
}
rm -f /tmp/compat-install.$$

for peer in /usr/bin/zabbix_sender /usr/sbin/zabbix_agentd /usr/sbin/zabbix_agent2; do
	[ -x "$peer" ] || { echo "compat: $peer is not there after the installation" >&2; exit 1; }
done

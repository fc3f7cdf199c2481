#!/bin/sh
# Installs the real peers that the tests of collectors talk to, from Debian. Installs only what is missing, starts no service, and
# fails when a peer is not there in the end.
set -eu

need() { # need PROGRAM PACKAGE
	[ -x "$1" ] || missing="$missing $2"
}
missing=""
need /usr/sbin/zabbix_agentd zabbix-agent
need /usr/sbin/zabbix_agent2 zabbix-agent2
need /usr/bin/zabbix_sender zabbix-sender
need /usr/sbin/snmpd snmpd
need /usr/bin/snmptrap snmp
need /usr/sbin/nginx nginx-light
need /usr/sbin/sshd openssh-server
need /usr/bin/ipmi_sim openipmi
need /usr/sbin/mariadbd mariadb-server
need /usr/lib/postgresql/15/bin/psql postgresql-15
need /usr/sbin/zabbix-java-gateway.jar zabbix-java-gateway
need /usr/bin/java default-jre-headless
[ -z "$missing" ] && exit 0

if [ "$(id -u)" != 0 ]; then
	echo "collect: missing packages:$missing; install them, or run the tests as root" >&2
	exit 1
fi

# A policy that forbids starting services, for as long as this script runs.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap 'rm -f "$policy"' EXIT
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
fi

log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
apt-get install -y -q --no-install-recommends $missing >"$log" 2>&1 || {
	apt-get update -q >>"$log" 2>&1 || true
	apt-get install -y -q --no-install-recommends $missing >>"$log" 2>&1 || {
		cat "$log" >&2
		echo "collect: cannot install$missing" >&2
		exit 1
	}
}
rm -f "$log"

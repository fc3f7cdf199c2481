#!/bin/bash
# Installs the PostgreSQL 15 that the tests of this folder start, from Debian's packages. It fails loudly when it cannot.
set -euo pipefail
bin=/usr/lib/postgresql/15/bin
if [ -x "$bin/postgres" ] && [ -x "$bin/initdb" ]; then
	exit 0
fi
if [ "$(id -u)" != 0 ]; then
	echo "install-postgresql.sh: PostgreSQL 15 is missing and only root can install it: apt-get install postgresql-15" >&2
	exit 1
fi
export DEBIAN_FRONTEND=noninteractive
mkdir -p /etc/postgresql-common
# No cluster of its own: the tests make theirs.
[ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf
apt-get update -q
apt-get install -q -y --no-install-recommends postgresql-15
[ -x "$bin/postgres" ] || { echo "install-postgresql.sh: $bin/postgres is still missing" >&2; exit 1; }

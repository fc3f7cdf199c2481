#!/bin/bash
# Installs PostgreSQL 14, 16, 17 and 18, which the tests of this folder start beside Debian's 15. It fails loudly when it cannot.
set -euo pipefail
cd "$(dirname "$0")/testdata/versions"
if [ node_modules/.package-lock.json -nt package-lock.json ]; then
	exit 0
fi
command -v node >/dev/null || { echo "install-versions.sh: node is missing; install Node.js 20 or newer" >&2; exit 1; }
npm ci --no-audit --no-fund --loglevel=error
for n in 14 16 17 18; do
	chmod -R a+rX "node_modules/pg$n" # the servers refuse to run as root
	[ -x "node_modules/pg$n/native/bin/postgres" ] || { echo "install-versions.sh: PostgreSQL $n is still missing" >&2; exit 1; }
done
touch node_modules/.package-lock.json

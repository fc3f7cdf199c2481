#!/usr/bin/env bash
# Measures the store on PostgreSQL in one run on this machine, with the private server that the tests start (fsync=off: only the work of the database
# counts, not the disk) and TimescaleDB in WebAssembly, of which only sizes mean something. ROWS (default 5,000,000) is the size of a full table.
set -euo pipefail
cd "$(dirname "$0")/.."
bash storage/postgres/install-postgresql.sh
bash storage/postgres/install-timescale.sh
go test -run '^$' -timeout 0 -benchtime "${BENCHTIME:-15x}" -count 1 -bench '^(BenchmarkInsert|BenchmarkFilled|BenchmarkDropDay|BenchmarkBytes)$' ./storage/postgres |
  awk '/^Benchmark/ { name = $1; sub(/^Benchmark/, "", name); sub(/-[0-9]+$/, "", name); line = sprintf("%-28s", name)
       for (i = 3; i < NF; i += 2) if ($(i + 1) != "ns/op") line = line sprintf("  %14s %s", $i, $(i + 1)); print line; next }
       /^(FAIL|---|panic|ok|    )/ { print }'

#!/usr/bin/env bash
# Measures how many checks a core of the server makes in a second, against real peers on this machine: a Zabbix agent, an SNMP device
# asked for 100 variables at once, a web server. What the peers cost is not counted. BENCHTIME is how long each is measured.
set -euo pipefail
cd "$(dirname "$0")/.."
bash test/collect/install.sh
go test -run '^$' -bench '^BenchmarkCollect$' -benchtime "${BENCHTIME:-5s}" -timeout 20m ./test/collect |
  awk '/^BenchmarkCollect/ { sub(/^BenchmarkCollect\//, "", $1); sub(/-[0-9]+$/, "", $1)
    for (i = 3; i < NF; i += 2) m[$(i + 1)] = $i
    printf "%-8s %10.0f checks per second and core  %6.2f %% failed\n", $1, m["checks/core-s"], m["failed-%"] }'

#!/usr/bin/env bash
# Climbs the ladder of new values per second against one server on this machine and prints, for each rung, what it held and what it
# cost, with the curves of Zabbix's own talk: use of the history cache, busy % of trappers and syncers, how long a write to the disk takes. HOSTS ×
# ITEMS items, TRIGGERS triggers each, STRINGS of them texts; SECONDS_PER_RUNG on each rung of LADDER, while DASHBOARDS people have 30 charts of an hour
# before them, anew every ten seconds. The generator runs on the same cores; its CPU is counted apart, that of the charts is the server's. TIDEMARK_BIN
# names the binary.
#
# Then WIDE items with intervals of 4–7 s, and a start with them (WIDE= leaves that out). Then Tidemark and Debian's Zabbix 6.0 with PostgreSQL 15
# climb COMPARE, and Tidemark BEYOND as well, one after the other, with the same generator, items and triggers, by the senders' protocol; this needs
# root. COMPARE= leaves that out, LADDER= the first part.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${TIDEMARK_BIN:-bin/tidemark}
hosts=${HOSTS:-100} items=${ITEMS:-1000} triggers=${TRIGGERS:-0.6} rung=${SECONDS_PER_RUNG:-10}
ladder=${LADDER-35000 50000 80000 125000 200000 300000 500000} compare=${COMPARE-30000 45000 55000} beyond=${BEYOND-150000 300000}
strings=${STRINGS-0.05} dashboards=${DASHBOARDS-10} wide=${WIDE-500000}
server='' dir=''
. bench/nvps-zabbix.sh

tidemark_stop() {
  [ -z "$server" ] || { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }
  server=''
}
people=''
people_stop() {
  [ -z "$people" ] || { kill "$people" 2>/dev/null || true; wait "$people" 2>/dev/null || true; }
  people=''
}
end() { people_stop; tidemark_stop; zabbix_stop; rm -rf "$dir"; }
trap end EXIT

metric() { curl -s "http://$http/metrics" | awk -v name="$1" '$1 == name { print $2 }'; }
load() { "$bin" load --server "$trapper" --http "$http" --hosts "$hosts" --items "$items" --strings "$strings" --protocol "$protocol" --json "$@" 2>/dev/null; }
field() { python3 -c 'import json,sys; d=json.load(sys.stdin); print(eval(sys.argv[1], {"d": d}))' "$1"; }

# tidemark_run starts the binary on the data in $dir and waits until it listens.
tidemark_run() {
  "$bin" server --data "$dir/data" --http 127.0.0.1:0 --trapper 127.0.0.1:0 --disk-space 8GiB >"$dir/out" 2>"$dir/log" &
  server=$!
  until grep -q "Tidemark is at" "$dir/out"; do sleep 0.05; kill -0 "$server"; done
  http=$(sed -n 's#.*at http://\([0-9.:]*\).*#\1#p' "$dir/out")
  trapper=$(sed -n 's#.*senders: \([0-9.:]*\).*#\1#p' "$dir/out")
}

# tidemark_start starts a server of its own for a protocol, agent or sender, with all hosts and items.
tidemark_start() {
  protocol=$1
  rm -rf "$dir"
  dir=$(mktemp -d)
  tidemark_run
  echo "Tidemark gets $((hosts * items)) items with $triggers triggers each …" >&2
  load --provision --triggers "$triggers" --nvps 1000 --seconds 1 >/dev/null
}

# counters prints the counters that a rung is judged by: CPU, busy seconds of trappers and of both halves of the syncers, syncs and their seconds.
counters() {
  curl -s "http://$http/metrics" | awk '
    $1 == "process_cpu_seconds_total" { a = $2 } $1 == "tidemark_trapper_busy_seconds_total" { b = $2 }
    $1 == "tidemark_histsync_append_busy_seconds_total" { c = $2 } $1 == "tidemark_histsync_evaluate_busy_seconds_total" { d = $2 }
    $1 == "tidemark_dbengine_log_sync_duration_seconds_count" { e = $2 } $1 == "tidemark_dbengine_log_sync_duration_seconds_sum" { f = $2 }
    END { print a + 0, b + 0, c + 0, d + 0, e + 0, f + 0 }'
}

# tidemark_rung sends at what its arguments say; it leaves the report, tidemark_cost in CPU seconds per million values, the differences of the
# counters with the seconds they took, and cache, the most that was used.
tidemark_rung() {
  local before after watcher began
  before=$(counters)
  began=$(date +%s.%N)
  : >"$dir/cache"
  (while sleep 0.5; do metric tidemark_histcache_used_bytes >>"$dir/cache"; done) &
  watcher=$!
  report=$(load "$@" --seconds "$rung" || true)
  kill $watcher; wait $watcher 2>/dev/null || true
  after=$(counters)
  differences=$(python3 -c '
import sys, time
a, b = [[float(v) for v in s.split()] for s in sys.argv[1:3]]
print(*[y - x for x, y in zip(a, b)], time.time() - float(sys.argv[3]))' "$before" "$after" "$began")
  tidemark_cost=$(python3 -c "print(${differences%% *}/($(field 'd["processed"]' <<<"$report")/1e6))")
  cache=$(sort -n "$dir/cache" | tail -n 1)
}

header() {
  printf '%9s %9s %7s %10s %9s %7s %8s %8s %10s %8s %8s %8s %7s\n' asked held failed 'server s/M' 'load s/M' 'p50 ms' 'p99 ms' 'cache %' 'trappers %' 'store %' 'eval %' 'sync ms' 'RSS MB'
}

# row prints what tidemark_rung found.
row() {
  # shellcheck disable=SC2046,SC2086 — the numbers are words
  printf '%9s %9.0f %7d %10.2f %9.2f %7.1f %8.1f %8.1f %10.1f %8.1f %8.1f %8.2f %7.0f\n' "$1" "$(field 'd["nvps"]' <<<"$report")" "$(field 'd["failed"]' <<<"$report")" \
    "$tidemark_cost" "$(field 'd["cpu_seconds"]/(d["processed"]/1e6)' <<<"$report")" "$(field 'd["latency_ms"]["p50"]' <<<"$report")" \
    "$(field 'd["latency_ms"]["p99"]' <<<"$report")" "$(python3 -c "print(100*${cache:-0}/$(metric tidemark_histcache_limit_bytes))")" \
    $(python3 -c '
import sys
_, trappers, store, evaluate, syncs, seconds, wall = map(float, sys.argv[1:])
print(100 * trappers / wall, 100 * store / wall, 100 * evaluate / wall, 1000 * seconds / max(1, syncs))' $differences) \
    "$(python3 -c "print($(metric process_resident_memory_bytes)/1e6)")"
}

# climb prints the first table.
climb() {
  tidemark_start "${PROTOCOL:-agent}"
  if [ "$dashboards" -gt 0 ]; then
    python3 bench/dashboards.py "$http" "$dashboards" 30 >"$dir/people" &
    people=$!
  fi
  header
  local nvps
  for nvps in $ladder; do
    tidemark_rung --nvps "$nvps"
    row "$nvps"
  done
  if [ -n "$people" ]; then
    people_stop
    echo "Charts of $dashboards dashboards meanwhile: $(cat "$dir/people")"
  fi
  tidemark_stop
}

# widely prints what it takes to have very many items, each at an interval of its own.
widely() {
  local began items=$((wide / hosts)) rung=$((rung * 2))
  tidemark_start agent
  tidemark_stop
  began=$(date +%s.%N)
  tidemark_run
  load --hosts 1 --nvps 100 --seconds 1 >/dev/null &
  until [ "$(metric tidemark_histsync_values_total)" -gt 0 ]; do sleep 0.02; done
  echo
  echo "Start with $wide items until the first value is processed: $(python3 -c "import time; print(round(time.time() - $began, 2))") s; $(python3 -c "print(round($(metric process_resident_memory_bytes)/1e6))") MB resident."
  wait $!
  header
  tidemark_rung --interval 4s-7s
  row 4s-7s
  tidemark_stop
}

# compare_rung measures Tidemark at a rate and prints its line of the second table.
compare_rung() {
  tidemark_rung --nvps "$1"
  printf '%-22s %8d %10.0f %8d %23.2f %9.1f %9.1f %8.0f\n' Tidemark "$1" "$(field 'd["nvps"]' <<<"$report")" "$(field 'd["failed"]' <<<"$report")" "$tidemark_cost" \
    "$(field 'd["latency_ms"]["p50"]' <<<"$report")" "$(field 'd["latency_ms"]["p99"]' <<<"$report")" "$(python3 -c "print($(python3 bench/tree.py memory "$server")/1e6)")"
}

# beside prints the second table. A first round fills the caches of both and is not counted.
beside() {
  local nvps values ours theirs best costs=() strings=0
  echo
  printf '%-22s %8s %10s %8s %23s %9s %9s %8s\n' server asked held failed 's/M (server + store)' 'p50 ms' 'p99 ms' 'MB'
  tidemark_start sender
  tidemark_rung --nvps "${compare%% *}"
  for nvps in $compare; do
    compare_rung "$nvps"
    costs+=("$tidemark_cost")
  done
  for nvps in $beyond; do compare_rung "$nvps"; done
  best=$tidemark_cost
  values=$(metric tidemark_histsync_values_total)
  tidemark_stop
  ours=$(python3 -c "print(round($(du -sb "$dir/data/engine" | cut -f 1)/$values, 1))")
  echo "Zabbix gets the same …" >&2
  zabbix_start
  zabbix_rung "${compare%% *}" >/dev/null
  local n=0 ratios=''
  for nvps in $compare; do
    zabbix_rung "$nvps"
    ratios+=" $(python3 -c "print(round($zabbix_cost/${costs[$n]}, 1))")"
    n=$((n + 1))
  done
  theirs=$(zabbix_bytes)
  echo
  echo "Zabbix with PostgreSQL takes$ratios times Tidemark's CPU per value at the same rates, $(python3 -c "print(round($zabbix_cost/$best, 1))") times at the highest of each."
  echo "Bytes on disk per value: Tidemark $ours (all files after it has ended), Zabbix $theirs (table and index, without the write-ahead log)."
}

[ -z "$ladder" ] || climb
[ -z "$wide" ] || widely
[ -z "$compare" ] || beside

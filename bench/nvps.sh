#!/usr/bin/env bash
# Climbs the ladder of new values per second against one server on this machine and prints, for each rung, what it held and what it
# cost. HOSTS × ITEMS items with TRIGGERS triggers each; SECONDS_PER_RUNG on each rung of LADDER. The generator runs on the same cores; its
# CPU is counted apart. TIDEMARK_BIN names the binary.
#
# Then Tidemark and Debian's Zabbix 6.0 with PostgreSQL 15 climb COMPARE, one after the other, with the same generator, items and triggers, by
# the senders' protocol; this needs root. COMPARE= leaves that out, LADDER= the first part.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${TIDEMARK_BIN:-bin/tidemark}
hosts=${HOSTS:-100} items=${ITEMS:-1000} triggers=${TRIGGERS:-0.6} rung=${SECONDS_PER_RUNG:-10}
ladder=${LADDER-35000 50000 80000 125000 200000 300000} compare=${COMPARE-10000 30000}
server='' dir=''
. bench/nvps-zabbix.sh

tidemark_stop() {
  [ -z "$server" ] || { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }
  server=''
}
end() { tidemark_stop; zabbix_stop; rm -rf "$dir"; }
trap end EXIT

metric() { curl -s "http://$http/metrics" | awk -v name="$1" '$1 == name { print $2 }'; }
load() { "$bin" load --server "$trapper" --http "$http" --hosts "$hosts" --items "$items" --protocol "$protocol" --json "$@" 2>/dev/null; }
field() { python3 -c 'import json,sys; d=json.load(sys.stdin); print(eval(sys.argv[1], {"d": d}))' "$1"; }

# tidemark_start starts a server of its own for a protocol, agent or sender, with all hosts and items.
tidemark_start() {
  protocol=$1
  rm -rf "$dir"
  dir=$(mktemp -d)
  "$bin" server --data "$dir/data" --http 127.0.0.1:0 --trapper 127.0.0.1:0 --disk-space 8GiB >"$dir/out" 2>"$dir/log" &
  server=$!
  until grep -q "Tidemark is at" "$dir/out"; do sleep 0.1; kill -0 "$server"; done
  http=$(sed -n 's#.*at http://\([0-9.:]*\).*#\1#p' "$dir/out")
  trapper=$(sed -n 's#.*senders: \([0-9.:]*\).*#\1#p' "$dir/out")
  echo "Tidemark gets $((hosts * items)) items with $triggers triggers each …" >&2
  load --provision --triggers "$triggers" --nvps 1000 --seconds 1 >/dev/null
}

# tidemark_rung sends at a rate; it leaves the report, tidemark_cost in CPU seconds per million values, and cache, the most that was used.
tidemark_rung() {
  local before after watcher
  before=$(metric process_cpu_seconds_total)
  : >"$dir/cache"
  (while sleep 0.5; do metric tidemark_histcache_used_bytes >>"$dir/cache"; done) &
  watcher=$!
  report=$(load --nvps "$1" --seconds "$rung" || true)
  kill $watcher; wait $watcher 2>/dev/null || true
  after=$(metric process_cpu_seconds_total)
  tidemark_cost=$(python3 -c "print(($after-$before)/($(field 'd["processed"]' <<<"$report")/1e6))")
  cache=$(sort -n "$dir/cache" | tail -n 1)
}

# climb prints the first table.
climb() {
  tidemark_start "${PROTOCOL:-agent}"
  printf '%10s %10s %8s %12s %12s %9s %9s %10s %8s\n' asked held failed 'server s/M' 'load s/M' 'p50 ms' 'p99 ms' 'cache %' 'RSS MB'
  local nvps
  for nvps in $ladder; do
    tidemark_rung "$nvps"
    printf '%10d %10.0f %8d %12.2f %12.2f %9.1f %9.1f %10.1f %8.0f\n' "$nvps" "$(field 'd["nvps"]' <<<"$report")" "$(field 'd["failed"]' <<<"$report")" \
      "$tidemark_cost" "$(field 'd["cpu_seconds"]/(d["processed"]/1e6)' <<<"$report")" \
      "$(field 'd["latency_ms"]["p50"]' <<<"$report")" "$(field 'd["latency_ms"]["p99"]' <<<"$report")" \
      "$(python3 -c "print(100*${cache:-0}/$(metric tidemark_histcache_limit_bytes))")" "$(python3 -c "print($(metric process_resident_memory_bytes)/1e6)")"
  done
  tidemark_stop
}

# beside prints the second table.
beside() {
  local nvps values ours theirs bytes costs=()
  printf '%-22s %8s %10s %8s %23s %9s %9s %8s\n' server asked held failed 's/M (server + store)' 'p50 ms' 'p99 ms' 'MB'
  tidemark_start sender
  for nvps in $compare; do
    tidemark_rung "$nvps"
    costs+=("$tidemark_cost")
    printf '%-22s %8d %10.0f %8d %23.2f %9.1f %9.1f %8.0f\n' Tidemark "$nvps" "$(field 'd["nvps"]' <<<"$report")" "$(field 'd["failed"]' <<<"$report")" "$tidemark_cost" \
      "$(field 'd["latency_ms"]["p50"]' <<<"$report")" "$(field 'd["latency_ms"]["p99"]' <<<"$report")" "$(python3 -c "print($(python3 bench/tree.py memory "$server")/1e6)")"
  done
  values=$(metric tidemark_histsync_values_total)
  tidemark_stop
  ours=$(python3 -c "print(round($(du -sb "$dir/data/engine" | cut -f 1)/$values, 1))")
  echo "Zabbix gets the same …" >&2
  zabbix_start
  local n=0 ratios=''
  for nvps in $compare; do
    zabbix_rung "$nvps"
    ratios+=" $(python3 -c "print(round($zabbix_cost/${costs[$n]}, 1))")"
    n=$((n + 1))
  done
  theirs=$(zabbix_bytes)
  echo
  echo "Zabbix with PostgreSQL takes$ratios times Tidemark's CPU per value."
  echo "Bytes on disk per value: Tidemark $ours (all files after it has ended), Zabbix $theirs (table and index, without the write-ahead log)."
}

[ -z "$ladder" ] || climb
[ -z "$compare" ] || beside

#!/usr/bin/env bash
# Climbs the ladder of new values per second against one server on this machine and prints, for each rung, what it held and what it
# cost. HOSTS × ITEMS items with TRIGGERS triggers each; SECONDS_PER_RUNG on each rung. The generator runs on the same cores; its CPU is
# counted apart. TIDEMARK_BIN names the binary.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${TIDEMARK_BIN:-bin/tidemark}
hosts=${HOSTS:-100} items=${ITEMS:-1000} triggers=${TRIGGERS:-0.6} rung=${SECONDS_PER_RUNG:-20}
protocol=${PROTOCOL:-agent}
dir=$(mktemp -d)
"$bin" server --data "$dir/data" --http 127.0.0.1:0 --trapper 127.0.0.1:0 --disk-space 8GiB >"$dir/out" 2>"$dir/log" &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true; rm -rf "$dir"' EXIT
until grep -q "Tidemark is at" "$dir/out"; do sleep 0.1; kill -0 $server; done
http=$(sed -n 's#.*at http://\([0-9.:]*\).*#\1#p' "$dir/out")
trapper=$(sed -n 's#.*senders: \([0-9.:]*\).*#\1#p' "$dir/out")
metric() { curl -s "http://$http/metrics" | awk -v name="$1" '$1 == name { print $2 }'; }
load() { "$bin" load --server "$trapper" --http "$http" --hosts "$hosts" --items "$items" --protocol "$protocol" --json "$@" 2>/dev/null; }
field() { python3 -c 'import json,sys; d=json.load(sys.stdin); print(eval(sys.argv[1], {"d": d}))' "$1"; }

echo "provisioning $((hosts * items)) items with $triggers triggers each …" >&2
load --provision --triggers "$triggers" --nvps 1000 --seconds 1 >/dev/null
printf '%10s %10s %8s %12s %12s %9s %9s %10s %8s\n' asked held failed 'server s/M' 'load s/M' 'p50 ms' 'p99 ms' 'cache %' 'RSS MB'
for nvps in ${LADDER:-35000 50000 80000 125000 200000 300000}; do
  before=$(metric process_cpu_seconds_total)
  : >"$dir/cache"
  (while sleep 0.5; do metric tidemark_histcache_used_bytes >>"$dir/cache"; done) &
  watcher=$!
  report=$(load --nvps "$nvps" --seconds "$rung" || true)
  kill $watcher; wait $watcher 2>/dev/null || true
  after=$(metric process_cpu_seconds_total)
  processed=$(field 'd["processed"]' <<<"$report")
  cache=$(sort -n "$dir/cache" | tail -n 1)
  printf '%10d %10.0f %8d %12.2f %12.2f %9.1f %9.1f %10.1f %8.0f\n' "$nvps" "$(field 'd["nvps"]' <<<"$report")" "$(field 'd["failed"]' <<<"$report")" \
    "$(python3 -c "print(($after-$before)/($processed/1e6))")" "$(field 'd["cpu_seconds"]/(d["processed"]/1e6)' <<<"$report")" \
    "$(field 'd["latency_ms"]["p50"]' <<<"$report")" "$(field 'd["latency_ms"]["p99"]' <<<"$report")" \
    "$(python3 -c "print(100*${cache:-0}/$(metric tidemark_histcache_limit_bytes))")" "$(python3 -c "print($(metric process_resident_memory_bytes)/1e6)")"
done

#!/usr/bin/env bash
# New values per second into one PostgreSQL 15: Tidemark with its values there, Tidemark sharing the database with other servers, and Debian's Zabbix 6.0,
# one after the other, same generator, items and triggers, senders' protocol, 250 values a request. PostgreSQL has fsync on and synchronous_commit=off, as in
# nvps.sh; for the shared database, which acknowledges by its commit, synchronous_commit is on. HOSTS × ITEMS items, TRIGGERS triggers each;
# SECONDS_PER_RUNG at each rate of COMPARE, BEYOND for Tidemark only. Needs root.
#
# Each row says what was asked, what was answered a second, what was stored a second until the last value was in the tables, the processor time of server and
# PostgreSQL until then for a million values, and the write-ahead log of a value.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${TIDEMARK_BIN:-bin/tidemark}
hosts=${HOSTS:-100} items=${ITEMS:-1000} triggers=${TRIGGERS:-0.6} rung=${SECONDS_PER_RUNG:-15}
compare=${COMPARE-30000 45000 55000} beyond=${BEYOND-80000 110000 140000} who=${WHO-alone shared zabbix}
server='' dir=$(mktemp -d)
. bench/nvps-zabbix.sh

tidemark_stop() {
  [ -z "$server" ] || { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }
  server=''
}
end() { tidemark_stop; zabbix_stop; rm -rf "$dir"; }
trap end EXIT

metric() { curl -s "http://$http/metrics" | awk -v name="$1" '$1 == name { print $2 }'; }
load() { "$bin" load --server "$trapper" --http "$http" --hosts "$hosts" --items "$items" --protocol sender --json "$@" 2>/dev/null; }
field() { python3 -c 'import json,sys; d=json.load(sys.stdin); print(eval(sys.argv[1], {"d": d}))' "$1"; }
wal() { DB=postgres sql -c "select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"; }

# tidemark_start NAME starts a server on a database of that name; shared is what the name says.
tidemark_start() {
  local name=$1 more=''
  DB=postgres sql -c "create database $name"
  if [ "$name" = shared ]; then
    DB=postgres sql -c "alter database shared set synchronous_commit = on"
    more=', shared: true'
  fi
  cat >"$dir/$name.yaml" <<YAML
data: $dir/$name
http: {listen: "127.0.0.1:0"}
trapper: {listen: "127.0.0.1:0"}
storage: {engine: postgres, dsn: "host=$zdir user=postgres dbname=$name"$more}
YAML
  [ "$name" != shared ] || echo 'configuration: {engine: postgres}' >>"$dir/$name.yaml"
  "$bin" server --config "$dir/$name.yaml" >"$dir/out" 2>"$dir/log" &
  server=$!
  until grep -q "Tidemark is at" "$dir/out"; do sleep 0.05; kill -0 "$server" || { tail "$dir/log" >&2; exit 1; }; done
  http=$(sed -n 's#.*at http://\([0-9.:]*\).*#\1#p' "$dir/out")
  trapper=$(sed -n 's#.*senders: \([0-9.:]*\).*#\1#p' "$dir/out")
  until curl -sf "http://$http/-/ready" >/dev/null; do sleep 0.2; done
  echo "Tidemark ($name) gets $((hosts * items)) items with $triggers triggers each …" >&2
  load --provision --triggers "$triggers" --nvps 1000 --seconds 1 >/dev/null
}

# tidemark_rung NAME RATE runs one rung and prints its row.
tidemark_rung() {
  local nvps=$2 before began report answered stored server_before store_before wal_before seconds
  sleep 3
  before=$(metric tidemark_postgres_written_values_total) wal_before=$(wal)
  server_before=$(python3 bench/tree.py cpu "$server") store_before=$(python3 bench/tree.py cpu "$postmaster")
  began=$(date +%s.%N)
  report=$(load --nvps "$nvps" --seconds "$rung" || true)
  answered=$(field 'd["processed"]' <<<"$report")
  for _ in $(seq 600); do
    stored=$(metric tidemark_postgres_written_values_total)
    [ "$(python3 -c "print(int($stored-$before >= $answered))")" = 0 ] || break
    sleep 0.1
  done
  seconds=$(python3 -c "import time; print(time.time()-$began)")
  print_row "Tidemark, $1" "$nvps" "$report" "$(python3 -c "print(int($stored-$before))")" "$seconds" \
    "$(python3 -c "print($(python3 bench/tree.py cpu "$server")-$server_before)")" "$(python3 -c "print($(python3 bench/tree.py cpu "$postmaster")-$store_before)")" \
    "$(python3 -c "print($(wal)-$wal_before)")" "$(python3 bench/tree.py memory "$server")"
}

# print_row WHO ASKED REPORT STORED SECONDS SERVER-CPU STORE-CPU WAL-BYTES MEMORY
print_row() {
  python3 - "$@" <<'PY'
import json, sys
who, asked, report, stored, seconds, server, store, wal, memory = sys.argv[1:]
d, stored, server, store = json.loads(report), int(stored), float(server), float(store)
m = max(stored, 1) / 1e6
print(f"{who:18} {int(asked):8d} {d['nvps']:9.0f} {stored/float(seconds):9.0f} {d['failed']:7d} {(server+store)/m:8.2f} ({server/m:.2f} + {store/m:.2f}) {float(wal)/max(stored, 1):8.0f} "
      f"{d['latency_ms']['p50']:9.1f} {d['latency_ms']['p99']:9.1f} {float(memory)/1e6:8.0f}", flush=True)
PY
}

# zabbix_row RATE does the same for Zabbix. What it held counts what was answered, which is before it is stored.
zabbix_row() {
  local nvps=$1 server_before store_before wal_before written began report answered stored seconds
  zabbix_settled
  server_before=$(python3 bench/tree.py cpu "$zserver") store_before=$(python3 bench/tree.py cpu "$postmaster") wal_before=$(wal)
  written=$(zabbix_written) began=$(date +%s.%N)
  report=$(zabbix_load --nvps "$nvps" --seconds "$rung" || true)
  answered=$(field 'd["processed"]' <<<"$report")
  for _ in $(seq 240); do
    [ $(($(zabbix_written) - written)) -ge "$answered" ] && break
    sleep 0.5
  done
  stored=$(($(zabbix_written) - written))
  seconds=$(python3 -c "import time; print(time.time()-$began)")
  print_row Zabbix "$nvps" "$report" "$stored" "$seconds" "$(python3 -c "print($(python3 bench/tree.py cpu "$zserver")-$server_before)")" \
    "$(python3 -c "print($(python3 bench/tree.py cpu "$postmaster")-$store_before)")" "$(python3 -c "print($(wal)-$wal_before)")" "$(python3 bench/tree.py memory "$zserver")"
}

postgres_start
printf '%-18s %8s %9s %9s %7s %24s %8s %9s %9s %8s\n' server asked answered stored failed 's/M (server + store)' 'WAL B' 'p50 ms' 'p99 ms' 'MB'
for name in $who; do
  if [ "$name" = zabbix ]; then
    zabbix_start
    zabbix_row "${compare%% *}" >/dev/null # fills its caches
    for nvps in $compare; do zabbix_row "$nvps"; done
    echo "Bytes on disk per value: Zabbix $(zabbix_bytes)."
    continue
  fi
  tidemark_start "$name"
  tidemark_rung "$name" "${compare%% *}" >/dev/null
  for nvps in $compare $beyond; do tidemark_rung "$name" "$nvps"; done
  tidemark_stop
  echo "Bytes on disk per value: Tidemark ($name) $(DB=$name sql -c "select round(sum(pg_total_relation_size(c.oid))::numeric / greatest(1, (select count(*) from history)), 1) from pg_class c where c.relname like 'history_c%' and c.relkind = 'r'")."
done

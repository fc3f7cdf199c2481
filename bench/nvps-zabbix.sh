# Debian's Zabbix 6.0 server with PostgreSQL 15 on the ladder of nvps.sh, which reads this file.

postgres=/usr/lib/postgresql/15/bin
zabbix_folder=${ZABBIX_FOLDER:-/var/cache/tidemark-test/zabbix}

sql() { runuser -u postgres -- "$postgres/psql" -h "$zdir" -d "${DB:-zabbix}" -qAt -v ON_ERROR_STOP=1 "$@"; }

# zabbix_objects is SQL that makes the hosts, items and triggers that `tidemark load --provision --protocol sender` makes.
zabbix_objects() {
  cat <<SQL
begin;
update hosts set status = 1 where status = 0;
insert into hosts (hostid, host, name, status) select 900000+h, n, n, 0
  from (select h, 'load-' || lpad((h+1)::text, 4, '0') as n from generate_series(0, $hosts-1) h) x;
insert into hosts_groups (hostgroupid, hostid, groupid) select 900000+h, 900000+h, (select min(groupid) from hstgrp) from generate_series(0, $hosts-1) h;
create temporary table load as select h, i, h*$items+i as n, floor(i*$triggers)::int as t, floor((i+1)*$triggers) > floor(i*$triggers) as has
  from generate_series(0, $hosts-1) h, generate_series(0, $items-1) i;
insert into items (itemid, type, hostid, name, key_, value_type) select 1000000+n, 2, 900000+h, 'Load item ' || i+1, 'load.item[' || i+1 || ']', 0 from load;
insert into item_rtdata (itemid) select 1000000+n from load;
insert into triggers (triggerid, expression, description, priority)
  select 1000000+n, '{' || 1000000+n || '}>' || case when t % 3 = 2 then 9700 else 9800 end, 'load.item[' || i+1 || '] is high', case when t % 3 = 2 then 2 else 1 end
  from load where has;
insert into functions (functionid, itemid, triggerid, name, parameter)
  select 1000000+n, 1000000+n, 1000000+n, case when t % 3 = 2 then 'avg' else 'last' end, case when t % 3 = 2 then '\$,5m' else '\$' end from load where has;
commit;
analyze;
SQL
}

# postgres_start starts the PostgreSQL of zabbix_start, if it does not run yet, and sets zdir and postmaster.
postgres_start() {
  [ -z "${postmaster:-}" ] || return 0
  zdir=$(mktemp -d /tmp/tmnvps.XXXXXX) # sockets need a short path
  chown postgres "$zdir"
  chmod 755 "$zdir"
  runuser -u postgres -- "$postgres/initdb" -D "$zdir/data" -U postgres -E UTF8 --locale=C --auth=trust >"$zdir/initdb.log"
  (cd "$zdir" && exec setpriv --reuid postgres --regid postgres --init-groups "$postgres/postgres" -D "$zdir/data" -k "$zdir" -c listen_addresses= \
    -c synchronous_commit=off -c shared_buffers=512MB -c max_wal_size=4GB -c checkpoint_timeout=15min) >"$zdir/postgres.log" 2>&1 &
  postmaster=$!
  until DB=postgres sql -c 'select 1' >/dev/null 2>&1; do sleep 0.1; kill -0 $postmaster; done
}

# zabbix_start sets zdir, postmaster, zserver, ztrapper.
zabbix_start() {
  bash test/conformance/install.sh "$zabbix_folder" >&2
  postgres_start
  DB=postgres sql -c 'create database zabbix'
  for file in schema images data; do zcat "$zabbix_folder/usr/share/zabbix-server-pgsql/$file.sql.gz" | sql >/dev/null; done
  zabbix_objects | sql
  local port
  port=$(python3 -c 'import random, socket; s = socket.socket(); p = random.randint(20000, 32000); s.bind(("127.0.0.1", p)); print(p)') # Zabbix takes none above 32767
  ztrapper=127.0.0.1:$port
  cat >"$zdir/zabbix.conf" <<CONF
ListenIP=127.0.0.1
ListenPort=$port
LogFile=$zdir/zabbix.log
PidFile=$zdir/zabbix.pid
SocketDir=$zdir
DBHost=$zdir
DBName=zabbix
DBUser=postgres
AllowRoot=1
CacheSize=1G
HistoryCacheSize=256M
HistoryIndexCacheSize=128M
TrendCacheSize=256M
ValueCacheSize=512M
StartDBSyncers=4
StartTrappers=16
StartPreprocessors=3
StartPollers=1
StartPingers=0
StartDiscoverers=0
StartHTTPPollers=0
CONF
  "$zabbix_folder/usr/sbin/zabbix_server" -f -c "$zdir/zabbix.conf" >"$zdir/out" 2>&1 &
  zserver=$!
  # It takes values once it has read the configuration.
  until zabbix_load --nvps 1000 --seconds 1 | field 'd["processed"] or 1/0' >/dev/null 2>&1; do sleep 1; kill -0 $zserver || { tail -n 20 "$zdir/zabbix.log" "$zdir/out" >&2; exit 1; }; done
}

zabbix_stop() {
  local pid
  for pid in ${zserver:-} ${postmaster:-}; do
    kill -INT "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  rm -rf "${zdir:-}"
}

zabbix_load() { "$bin" load --server "$ztrapper" --hosts "$hosts" --items "$items" --protocol sender --json "$@" 2>/dev/null; }

zabbix_written() { sql -c "select n_tup_ins from pg_stat_user_tables where relname = 'history'"; }

# zabbix_settled waits until everything answered so far is in PostgreSQL: Zabbix answers before that.
zabbix_settled() {
  local before=-1 now
  for _ in $(seq 60); do
    now=$(zabbix_written)
    [ "$now" = "$before" ] && return
    before=$now
    sleep 2.5
  done
}

# zabbix_rung runs one rung and prints its row. What it held counts what was answered, which is before it is stored; its CPU is counted until
# the last value is in PostgreSQL, whose own count of rows comes up to ten seconds late.
zabbix_rung() {
  local nvps=$1 server_before store_before written report answered server_cpu store_cpu
  zabbix_settled
  server_before=$(python3 bench/tree.py cpu "$zserver") store_before=$(python3 bench/tree.py cpu "$postmaster")
  written=$(zabbix_written)
  report=$(zabbix_load --nvps "$nvps" --seconds "$rung" || true)
  answered=$(field 'd["processed"]' <<<"$report")
  for _ in $(seq 240); do
    [ $(($(zabbix_written) - written)) -ge "$answered" ] && break
    sleep 0.5
  done
  local stored
  stored=$(($(zabbix_written) - written))
  server_cpu=$(python3 -c "print($(python3 bench/tree.py cpu "$zserver")-$server_before)")
  store_cpu=$(python3 -c "print($(python3 bench/tree.py cpu "$postmaster")-$store_before)")
  zabbix_cost=$(python3 -c "print(($server_cpu+$store_cpu)/($stored/1e6))")
  printf '%-22s %8d %10.0f %8d %8.2f (%.1f + %.1f) %9.1f %9.1f %8.0f\n' "Zabbix + PostgreSQL" "$nvps" "$(field 'd["nvps"]' <<<"$report")" \
    "$(field 'd["failed"]' <<<"$report")" "$zabbix_cost" "$(python3 -c "print($server_cpu/($stored/1e6))")" "$(python3 -c "print($store_cpu/($stored/1e6))")" \
    "$(field 'd["latency_ms"]["p50"]' <<<"$report")" "$(field 'd["latency_ms"]["p99"]' <<<"$report")" \
    "$(python3 -c "print(($(python3 bench/tree.py memory "$zserver")+$(python3 bench/tree.py memory "$postmaster"))/1e6)")"
}

# zabbix_bytes prints the bytes on disk per value: the table of history with its index, without the write-ahead log.
zabbix_bytes() { sql -c "select round(pg_total_relation_size('history')::numeric / greatest(1, count(*)), 1) from history"; }

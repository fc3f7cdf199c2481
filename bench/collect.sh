#!/usr/bin/env bash
# Measures how many checks a core of the one who asks makes in a second, against real peers on this machine; what the peers cost is not
# counted. First flat out (a Zabbix agent, an SNMP device asked for 100 variables at once, a web server), in rounds as the poller makes such
# checks, and by Check, the way of what is not plain; then at the same pace beside the pollers
# of Zabbix 6.0 (zabbix_proxy: their code is that of the server) and beside the bare calls of the system that such checks need, then scrapes of a node exporter beside Prometheus, whole process beside whole
# process. BENCHTIME is how long each is measured. Less than four minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
for peers in collect metrics proxy; do bash "test/$peers/install.sh"; done
export BENCHTIME="${BENCHTIME:-10s}"
run() { go test -run '^$' -bench "$1" -benchtime "$2" -timeout 20m ./test/collect; }
{ run '^BenchmarkCollect$' 3s && run '^(BenchmarkFloor|BenchmarkPeers|BenchmarkScrape)$' 1s; } |
  awk '/^--- FAIL|^FAIL|_test.go:/ { print; bad = 1 }
    /^Benchmark/ { sub(/^Benchmark/, "", $1); sub(/-[0-9]+$/, "", $1)
    split("", m); for (i = 3; i < NF; i += 2) m[$(i + 1)] = $i
    rate[$1] = m["checks/core-s"]
    printf "%-24s %10.0f per second and core", $1, rate[$1]
    if ("failed-%" in m) printf "  %6.2f %% failed", m["failed-%"]
    if ("checks/s" in m) printf "  at %.0f a second", m["checks/s"]
    if ("all/core-s" in m) printf "  %.0f with the rest of the proxy", m["all/core-s"]
    print "" }
  function ratio(what, ours, theirs, target) {
    if (!rate[ours] || !rate[theirs]) return
    r = rate[ours] / rate[theirs]
    printf "%-40s %5.2f times (target %g: %s)\n", what, r, target, r >= target ? "reached" : "missed" }
  END { n = split("agent snmp http", k)
    for (i = 1; i <= n; i++) {
      ratio(k[i] ": flat out to Zabbix", "Collect/" k[i] "/rounds", "Peers/zabbix-" k[i], 5)
      ratio(k[i] ": same pace to Zabbix", "Peers/tidemark-" k[i], "Peers/zabbix-" k[i], 5)
      ratio(k[i] ": the least that it can cost to Zabbix", "Floor/" k[i], "Peers/zabbix-" k[i], 5) }
    ratio("scrape: to Prometheus", "Scrape/tidemark", "Scrape/prometheus", 1)
    exit bad }'

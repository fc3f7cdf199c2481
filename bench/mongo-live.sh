#!/usr/bin/env bash
# What watching 10,000 packets and 60 Mbit a second costs on a live device, and the highest rate that one core takes without drops, beside tcpdump and a prototype with gopacket. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v tcpdump >/dev/null || apt-get install -y -qq --no-install-recommends tcpdump >/dev/null
TIDEMARK_BIN=${TIDEMARK_BIN:-$PWD/bin/tidemark} go test -run '^$' -bench '^Benchmark(Live|Highest)$' -benchtime 1x -timeout 30m ./test/mongo | grep core

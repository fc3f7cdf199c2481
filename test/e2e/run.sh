#!/usr/bin/env bash
# Runs the browser tests against a real server and agent on free ports, with an empty data folder. TIDEMARK_BIN names the binary.
set -euo pipefail
cd "$(dirname "$0")"
bin=${TIDEMARK_BIN:-../../bin/tidemark}
dir=$(mktemp -d)
"$bin" up --data "$dir/data" --http 127.0.0.1:0 --trapper 127.0.0.1:0 >"$dir/out" 2>"$dir/log" &
server=$!
cleanup() {
  status=$?
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  if [ "$status" -ne 0 ]; then
    echo "the server's log ends with:"
    tail -n 40 "$dir/log"
  fi
  rm -rf "$dir"
}
trap cleanup EXIT
for _ in $(seq 1 300); do
  grep -q "Tidemark is at" "$dir/out" && break
  kill -0 "$server" || exit 1
  sleep 0.1
done
line=$(head -n 1 "$dir/out")
url=$(sed -n 's#.*at \(http://[0-9.:]*\).*#\1#p' <<<"$line")
trapper=$(sed -n 's#.*senders: \([0-9.:]*\).*#\1#p' <<<"$line")
echo "testing the page at $url"
TIDEMARK_URL=$url TIDEMARK_TRAPPER=$trapper npm test --silent

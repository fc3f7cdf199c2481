#!/bin/bash
# Runs the browser tests: what needs no common server two files at a time, then the rest one after the other on the real binary (TIDEMARK_BIN, default
# bin/tidemark) in an empty data folder on ports of its own. Names of files (journeys, page, …) run only these.
set -euo pipefail
cd "$(dirname "$0")"

bin=$(realpath "${TIDEMARK_BIN:-../../bin/tidemark}")
export TIDEMARK_BIN=$bin
[ -x "$bin" ] || { echo "run.sh: there is no binary at $bin; run make build" >&2; exit 1; }
[ -f ../../web/dist/index.html ] || { echo "run.sh: the page was not built; run make build" >&2; exit 1; }

data=$(mktemp -d)
server=
finish() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$data"
}
trap finish EXIT

# Two free ports below those that the system gives to connections.
read -r http trapper < <(node -e '
  const { createServer } = require("node:net");
  const free = () => new Promise((done) => {
    const s = createServer().on("error", () => done(free()));
    s.listen(20000 + Math.floor(Math.random() * 12000), "127.0.0.1", () => { const { port } = s.address(); s.close(() => done(port)); });
  });
  Promise.all([free(), free()]).then((ports) => console.log(...ports));
')

# wanted keeps the files that were asked for.
wanted() {
  for name in "$@"; do
    if [ ${#only[@]} -eq 0 ] || [[ " ${only[*]} " == *" $name "* ]]; then echo "$name.test.mjs"; fi
  done
}
only=("$@")

mapfile -t apart < <(wanted page people config dashboards manage)
if [ ${#apart[@]} -gt 0 ]; then env -u TIDEMARK_URL node --test --test-concurrency=2 "${apart[@]}"; fi

mapfile -t shared < <(wanted page manage dashboards journeys budgets)
[ ${#shared[@]} -gt 0 ] || exit 0

"$bin" up --data "$data/data" --http "127.0.0.1:$http" --trapper "127.0.0.1:$trapper" >"$data/log" 2>&1 &
server=$!
for _ in $(seq 120); do
  curl -fsS "http://127.0.0.1:$http/-/ready" >/dev/null 2>&1 && break
  kill -0 "$server" 2>/dev/null || { echo "run.sh: the server ended:" >&2; cat "$data/log" >&2; exit 1; }
  sleep 0.5
done
export TIDEMARK_URL="http://127.0.0.1:$http" TIDEMARK_TRAPPER="127.0.0.1:$trapper"
for file in "${shared[@]}"; do # one after the other: a later one finds what an earlier one left
  node --test "$file" || {
    echo "run.sh: the server's log ends with:" >&2
    tail -20 "$data/log" >&2
    exit 1
  }
done

#!/bin/bash
# Runs the browser test twice: against the fake server, and against the real binary (TIDEMARK_BIN, default
# bin/tidemark) in an empty data folder on ports of its own.
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

env -u TIDEMARK_URL node --test page.test.mjs
env -u TIDEMARK_URL node --test manage.test.mjs
env -u TIDEMARK_URL node --test dashboards.test.mjs
TIDEMARK_BIN="$bin" node --test people.test.mjs
TIDEMARK_BIN="$bin" node --test config.test.mjs

"$bin" up --data "$data/data" --http "127.0.0.1:$http" --trapper "127.0.0.1:$trapper" >"$data/log" 2>&1 &
server=$!
for _ in $(seq 120); do
  curl -fsS "http://127.0.0.1:$http/-/ready" >/dev/null 2>&1 && break
  kill -0 "$server" 2>/dev/null || { echo "run.sh: the server ended:" >&2; cat "$data/log" >&2; exit 1; }
  sleep 0.5
done
export TIDEMARK_URL="http://127.0.0.1:$http" TIDEMARK_TRAPPER="127.0.0.1:$trapper"
{ node --test page.test.mjs && node --test manage.test.mjs && node --test dashboards.test.mjs; } || {
  echo "run.sh: the server's log ends with:" >&2
  tail -20 "$data/log" >&2
  exit 1
}

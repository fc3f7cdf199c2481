#!/bin/sh
# Installs the real peers of the tests in this folder, only what is missing: FerretDB, a server that speaks MongoDB's protocol, built with
# dependencies of its own, and the driver for Node.js. Fails when one is not there in the end.
set -eu
cd "$(dirname "$0")"

version=v1.24.2
sum=h1:trrUU0LbmusMbyubhPS1IELncvrIwKrsRT2LW1UUWCw=
server=.tools/ferretdb-$version

if [ ! -x "$server" ]; then
	echo "install.sh: building FerretDB $version"
	mkdir -p .tools
	work=$(mktemp -d)
	trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
	printf 'module ferretdb\n\ngo 1.24\n' >"$work/go.mod"
	(cd "$work" && GOFLAGS=-modcacherw go mod download -json "github.com/FerretDB/FerretDB@$version" >module.json)
	grep -q "\"Sum\": \"$sum\"" "$work/module.json" || { echo "install.sh: FerretDB $version has another checksum than $sum" >&2; exit 1; }
	cp -R "$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' "$work/module.json")" "$work/source"
	chmod -R u+w "$work/source"
	# The module's archive lacks this file, without which the program does not start.
	printf %s "$version" >"$work/source/build/version/version.txt"
	(cd "$work/source" && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o ../ferretdb ./cmd/ferretdb)
	rm -f .tools/ferretdb-*
	mv "$work/ferretdb" "$server.new"
	mv "$server.new" "$server"
fi
"$server" --version >/dev/null || { echo "install.sh: $server does not start" >&2; exit 1; }

if [ ! -f node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
	npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
fi

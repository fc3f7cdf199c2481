#!/bin/sh
# Builds versitygw, an S3 server over a folder, into .tools/ of the repository, unless it is there already.
set -eu
cd "$(dirname "$0")/../.."
version=v1.8.0
[ -x .tools/versitygw-$version ] && exit 0
mkdir -p .tools
CGO_ENABLED=0 GOBIN="$PWD/.tools" GOFLAGS= go install "github.com/versity/versitygw/cmd/versitygw@$version"
mv .tools/versitygw ".tools/versitygw-$version"

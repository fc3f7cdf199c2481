#!/usr/bin/env bash
# Installs Debian's netdata, whose stress test is run beside our engine, without starting its service. Fails if it is not the build that shim.c fits.
set -euo pipefail
want=f0dad57e2798ce52c64107e4425b70c37c0e563f0dc4ebd4b1bcd9cd4645c0fd
if [ ! -x /usr/sbin/netdata ]; then
  [ "$(id -u)" = 0 ] || { echo "netdata: run as root, or install netdata-core" >&2; exit 1; }
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  export DEBIAN_FRONTEND=noninteractive
  install="apt-get install -y -q --no-install-recommends netdata-core gcc libc6-dev"
  $install >&2 || { apt-get update -q >&2 && $install >&2; }
fi
[ "$(sha256sum /usr/sbin/netdata | cut -d' ' -f1)" = "$want" ] || {
  echo "netdata: /usr/sbin/netdata is not that of netdata-core 1.37.1-2 for amd64, which the shim fits; leave netdata out with --engines" >&2
  exit 1
}

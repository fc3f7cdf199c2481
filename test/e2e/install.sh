#!/bin/sh
# Installs what the browser test needs and only what is missing: Chromium from Debian, and the driver from npm.
set -eu
cd "$(dirname "$0")"

if [ ! -x /usr/bin/chromium ]; then
  if [ "$(id -u)" -ne 0 ]; then
    echo "install.sh: /usr/bin/chromium is missing; install it with: sudo apt-get install chromium" >&2
    exit 1
  fi
  echo "install.sh: installing chromium"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
fi
/usr/bin/chromium --version --no-sandbox >/dev/null 2>&1 || {
  echo "install.sh: /usr/bin/chromium does not start" >&2
  exit 1
}

if [ ! -f node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --no-audit --no-fund --loglevel=error
fi

#!/bin/bash
# Installs PostgreSQL 15, which the tests start themselves.
set -e
exec bash "$(dirname "$0")/../../storage/postgres/install-postgresql.sh"

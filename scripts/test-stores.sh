#!/usr/bin/env bash
# Runs the tests in front of real stores: the gateway's own, `pushdown store-check`, those of foreign clients, and a whole epoch.
# `make test-stores` builds first. A store that cannot be installed here is skipped by its name, with the reason.
# Usage: test-stores.sh [ceph] [garage]; both by default
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- ceph garage

stores=()
for store in "$@"; do
  case "$store" in
    ceph | garage) ;;
    *) echo "test-stores: unknown store '$store': expected ceph or garage"; exit 2 ;;
  esac
  if scripts/setup.sh "$store"; then
    stores+=("$store")
  else
    echo "SKIPPED: all tests in front of $store: \`scripts/setup.sh $store\` failed, see above"
  fi
done
[ ${#stores[@]} -gt 0 ] || exit 0

# The names of these tests contain that of the store.
cargo test --locked --workspace --test it -- --ignored "${stores[@]}"
PUSHDOWN_TEST_BACKENDS=$(IFS=,; echo "${stores[*]}")
export PUSHDOWN_TEST_BACKENDS
.venv/bin/python -m pytest -q -n 2 --dist worksteal tests/clients
scripts/python.sh python -m pytest -c python/pyproject.toml -q python/tests/gateway/test_stores.py

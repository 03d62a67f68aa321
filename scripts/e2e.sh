#!/usr/bin/env bash
# The end-to-end benchmark, with all of its set-up; see bench/README.md. Usage: e2e.sh COMMAND ..., as
# `e2e.sh --help` tells. PEERS="torch tf" installs s3torchconnector (5 GB) and tf.data service (1.6 GB), too; without it they are
# measured where they are already there. E2E_SETUP=0 leaves the set-up out, where an image has done it.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${E2E_SETUP:-1}" = 1 ]; then
  scripts/setup.sh e2e
  if [ "${1:-}" = run ]; then
    for peer in ${PEERS:-}; do scripts/setup.sh "e2e-$peer"; done
    scripts/photos.sh all
    scripts/photos.sh elpv
    scripts/models.sh
    "${CARGO:-cargo}" build --release --locked -p pushdown-gateway -p pushdown-client -p pushdown-bench
  fi
fi
export PYTHONPATH=$PWD/bench:$PWD/scripts
exec .venv-e2e/bin/python -m e2e "$@"

#!/usr/bin/env bash
# Compares pushdown.torch.Loader with data loaders of others; see bench/README.md. Usage: bench-python.sh [over-link] [OPTION...], see --help.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv-bench-python/bin/python
export PYTHONPATH=$PWD/bench:$PWD/scripts:$PWD/python/bench

scripts/setup.sh bench-python
scripts/photos.sh all
# Build everything first, as a build during the measurement would disturb it. With fewer packages than `make build`, Cargo would
# pick other features, and compile all dependencies again.
"${CARGO:-cargo}" build --release --locked --quiet \
  -p pushdown-gateway -p pushdown-cli -p pushdown-bench -p transfer-learning -p pushdown-python
module=loaders
if [ "${1:-}" = over-link ]; then module=loaders.over_link && shift; fi
NATIVE=${CARGO_TARGET_DIR:-target}/release/lib_native.so exec scripts/python.sh "$python" -m "$module" "$@"

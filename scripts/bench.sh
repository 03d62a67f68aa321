#!/usr/bin/env bash
# Measures pushdown against its peers; see bench/README.md. Usage: bench.sh [SCENARIO...] [OPTION...], both as
# `pushdown-bench --help` has them.
# PEERS=torch installs torchvision (5 GB) and measures it, too; without it, it is measured where it is already there.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}

scripts/setup.sh bench
scripts/photos.sh all
scripts/models.sh efficientnet_lite0

peers=.venv-bench
if ! cmp -s bench/peers/requirements.txt "$peers/.stamp"; then
  echo "bench: installing the peers of bench/peers/requirements.txt into $peers"
  # The other environment knows how to make one where Debian left ensurepip out.
  python3 -m venv "$peers" 2>/dev/null || python3 -m virtualenv --quiet --clear "$peers"
  "$peers/bin/python" -m pip install --quiet --disable-pip-version-check --requirement bench/peers/requirements.txt
  cp bench/peers/requirements.txt "$peers/.stamp"
fi
binaries=${CARGO_TARGET_DIR:-target}/release
options=(--peers "$peers/bin/python" --gateway "$binaries/pushdown-gateway")

if [ "${PEERS:-}" = torch ]; then scripts/setup.sh golden; fi
if .venv-golden/bin/python -c 'import torchvision' 2>/dev/null; then
  options+=(--torch .venv-golden/bin/python)
fi

# Building beside the measurement would disturb it: all of it comes first.
"$cargo" build --release --locked --quiet -p pushdown-gateway -p pushdown-client -p pushdown-bench
echo "bench: load $(cut -d' ' -f1-3 /proc/loadavg), CPU time is measured, but an idle machine measures better"
exec "$binaries/pushdown-bench" "$@" "${options[@]}"

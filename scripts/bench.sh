#!/usr/bin/env bash
# Compares pushdown with its peers; see bench/README.md. Usage: bench.sh [SCENARIO...] [OPTION...], see `pushdown-bench --help`.
# PEERS=torch installs torchvision (5 GB); without it torchvision is measured only if it is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}

scripts/setup.sh bench
scripts/photos.sh all
scripts/models.sh efficientnet_lite0

peers=.venv-bench
if ! cmp -s bench/peers/requirements.txt "$peers/.stamp"; then
  echo "bench: installing the peers of bench/peers/requirements.txt into $peers"
  # Debian may lack ensurepip; virtualenv brings its own.
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

# Build everything first: a build during the measurement would disturb it. With fewer packages than `make build`, Cargo would pick other
# features, and compile all dependencies again.
"$cargo" build --release --locked --quiet -p pushdown-gateway -p pushdown-cli -p pushdown-bench -p transfer-learning -p pushdown-python
echo "bench: load $(cut -d' ' -f1-3 /proc/loadavg), measuring CPU time; an idle machine yields narrower intervals"
status=0
output=$("$binaries/pushdown-bench" "$@" "${options[@]}") || status=$?
if [ -n "$output" ]; then printf '%s\n' "$output"; fi
if [ "$status" != 0 ]; then exit "$status"; fi
# The last line is the path of the results. `memory` and `--help` write none.
case $output in
  *.json) PYTHONPATH=$PWD/bench "$peers/bin/python" -m e2e components "${output##*$'\n'}" ;;
esac

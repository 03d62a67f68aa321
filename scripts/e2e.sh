#!/usr/bin/env bash
# Runs the end-to-end benchmark with all of its set-up; see bench/README.md. Usage: e2e.sh COMMAND ..., see `e2e.sh --help`.
# PEERS="torch tf materialize" also installs s3torchconnector and litData (5 GB), tf.data service (1.6 GB), and img2dataset and a
# writer of shards (700 MB); without it they are measured only if they are installed. E2E_SETUP=0 skips the set-up, for an image that has done it.
set -euo pipefail
cd "$(dirname "$0")/.."

# Check the rights to shape links before the set-up, which takes many minutes. Without the tools the run checks after the set-up.
case " $* " in
  *" --no-shaping "* | *" --help "* | *" -h "*) ;;
  " run "*)
    reason=
    if [ "$(id -u)" != 0 ]; then
      reason="shaping requires root"
    elif [[ " $*" != *" --interface"* ]] && command -v ip >/dev/null && command -v tc >/dev/null &&
      command -v python3 >/dev/null; then
      reason=$(PYTHONPATH=scripts python3 -c 'import links; print(links.why_not_shapeable())')
    fi
    if [ -n "$reason" ]; then
      echo "e2e: links cannot be shaped: $reason. --no-shaping (make: NO_SHAPING=1) runs without" >&2
      exit 2
    fi
    ;;
esac

if [ "${E2E_SETUP:-1}" = 1 ]; then
  scripts/setup.sh e2e
  if [ "${1:-}" = run ]; then
    for peer in ${PEERS:-}; do scripts/setup.sh "e2e-$peer"; done
    scripts/photos.sh all
    scripts/photos.sh elpv
    scripts/models.sh
    "${CARGO:-cargo}" build --release --locked \
      -p pushdown-gateway -p pushdown-cli -p pushdown-bench -p transfer-learning -p pushdown-python
  fi
fi
export PYTHONPATH=$PWD/bench:$PWD/scripts
exec .venv-e2e/bin/python -m e2e "$@"

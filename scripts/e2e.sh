#!/usr/bin/env bash
# The end-to-end benchmark, with all of its set-up; see bench/README.md. Usage: e2e.sh COMMAND ..., as
# `e2e.sh --help` tells. PEERS="torch tf" installs s3torchconnector (5 GB) and tf.data service (1.6 GB), too; without it they are
# measured where they are already there. E2E_SETUP=0 leaves the set-up out, where an image has done it.
set -euo pipefail
cd "$(dirname "$0")/.."

# Links are shaped by whoever may: that is told before a set-up of many minutes. What is not installed yet is tried behind it.
case " $* " in
  *" --no-shaping "* | *" --help "* | *" -h "*) ;;
  " run "*)
    reason=
    if [ "$(id -u)" != 0 ]; then
      reason="that takes root"
    elif [[ " $*" != *" --interface"* ]] && command -v ip >/dev/null && command -v tc >/dev/null &&
      command -v python3 >/dev/null; then
      reason=$(PYTHONPATH=scripts python3 -c 'import links; print(links.forbidden())')
    fi
    if [ -n "$reason" ]; then
      echo "e2e: links cannot be shaped: $reason. --no-shaping goes on without; for make it is NO_SHAPING=1" >&2
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
    "${CARGO:-cargo}" build --release --locked -p pushdown-gateway -p pushdown-client -p pushdown-bench
  fi
fi
export PYTHONPATH=$PWD/bench:$PWD/scripts
exec .venv-e2e/bin/python -m e2e "$@"

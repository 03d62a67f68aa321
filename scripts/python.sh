#!/usr/bin/env bash
# Runs a command with the Python package of this checkout: its sources, and the native module that cargo has built.
# Usage: python.sh COMMAND..   (NATIVE=target/release/lib_native.so: another build of the module; VENV=.venv-python-torch: another environment)
set -euo pipefail
cd "$(dirname "$0")/.."
native=${NATIVE:-target/debug/lib_native.so}
[ -f "$native" ] || { echo "python: $native is missing: run \`cargo build --locked --workspace\`" >&2; exit 1; }
# Python imports a module by the name of its file.
ln -sf "$(realpath "$native")" python/python/pushdown/_native.abi3.so
export PYTHONPATH="$PWD/python/python${PYTHONPATH:+:$PYTHONPATH}" PATH="$PWD/${VENV:-.venv-python}/bin:$PATH"
exec "$@"

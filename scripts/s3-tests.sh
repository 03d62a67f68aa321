#!/usr/bin/env bash
# Runs the S3 compatibility tests on SeaweedFS, directly and through the gateway. No test may fail only through the gateway.
# Usage: s3-tests.sh [PYTEST-OPTION...], such as -k multipart.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh s3-tests
"${CARGO:-cargo}" build --locked --workspace --tests --benches
exec .venv/bin/python scripts/s3_tests.py "$PWD/.venv-s3-tests/bin/python" "$@"

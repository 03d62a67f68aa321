#!/usr/bin/env bash
# Checks deploy/ without a cluster: kustomize renders the base and each overlay, every document must match the schemas of Kubernetes, and
# systemd reads the unit. lint_deploy.py has further checks, which tests/deploy tests.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh deploy
python=.venv-deploy/bin/python
"$python" -m pytest -q tests/deploy
"$python" scripts/lint_deploy.py

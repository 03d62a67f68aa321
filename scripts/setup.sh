#!/usr/bin/env bash
# Installs what building and testing need: Debian packages and a Python environment of our own.
# Says what it does, does nothing twice. Usage: setup.sh [test|golden|bench]
set -euo pipefail
cd "$(dirname "$0")/.."
want=${1:-test}

say() { printf 'setup: %s\n' "$*"; }

packages=(cmake nasm make gcc g++ pkg-config jq)
[ "$want" = bench ] && packages+=(nginx-light)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  say "installing Debian packages: ${missing[*]}"
  root=()
  [ "$(id -u)" -eq 0 ] || root=(sudo)
  "${root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

venv() { # folder, requirements
  local stamp="$1/.stamp"
  if [ -e "$stamp" ] && cmp -s "$2" "$stamp"; then return; fi
  say "installing the Python packages of $2 into $1"
  # Debian keeps ensurepip in a package of its own; virtualenv from PyPI does without it.
  if ! python3 -m venv "$1" 2>/dev/null; then
    rm -rf "$1"
    python3 -m pip install --quiet --user --break-system-packages virtualenv
    python3 -m virtualenv --quiet "$1"
  fi
  "$1/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$2"
  cp "$2" "$stamp"
}

case "$want" in
  test | bench) venv .venv scripts/requirements/test.txt ;;
  golden) venv .venv-golden scripts/requirements/golden.txt ;;
  *) say "unknown set '$want', expected test, bench or golden"; exit 2 ;;
esac

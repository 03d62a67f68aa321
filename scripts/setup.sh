#!/usr/bin/env bash
# Installs Debian packages and Python environments for building and testing. Prints what it does, and skips what is installed.
# Usage: setup.sh [test|debian|golden|golden-images|golden-tables|golden-tiffs|golden-shards|writers-parquet|writers-text-arrow|bench|bench-python|e2e|e2e-torch|e2e-tf|e2e-materialize|suites|stores|ceph|garage|containers|python|python-torch|ray|wheels|lint|deploy]
set -euo pipefail
cd "$(dirname "$0")/.."
selection=${1:-test}

say() { printf 'setup: %s\n' "$*"; }

packages=(cmake nasm make gcc g++ pkg-config jq iproute2)
case "$selection" in
  test | debian) packages+=(nginx-light curl) ;;
  bench | e2e) packages+=(nginx-light) ;;
  bench-python | e2e-torch) packages+=(curl) ;;
  golden-images) packages+=(libjpeg-turbo-progs) ;;
  golden-shards) packages+=(zip) ;;
  containers)
    packages+=(debootstrap iptables)
    # Any engine's program will do, and an installed one is not replaced.
    command -v dockerd >/dev/null || packages+=(docker.io)
    ;;
  writers-text-arrow) packages+=(pigz tabix zstd) ;;
  ceph) packages+=(ceph-mon ceph-osd radosgw) ;;
  deploy) command -v systemd-analyze >/dev/null || packages+=(systemd) ;;
esac
# Debian packages venv separately from Python.
if [ "$(command -v python3)" = /usr/bin/python3 ]; then packages+=(python3-venv); fi
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  say "installing Debian packages: ${missing[*]}"
  root=()
  [ "$(id -u)" -eq 0 ] || root=(sudo)
  "${root[@]}" apt-get update -qq
  # Debian starts the services of a package as it installs it, unless this program forbids it. The tests start their own.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap '"${root[@]}" rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | "${root[@]}" install -m 755 /dev/stdin "$policy"
  fi
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >/dev/null
fi

# Garage's developers publish its source on crates.io, but no package of Debian or PyPI.
garage() { # version
  if [ -x .cache/garage/bin/garage ] && grep -qF "\"garage $1 " .cache/garage/.crates2.json; then return; fi
  say "building Garage $1 into .cache/garage, once: up to half an hour on two cores"
  local build
  build=$(mktemp -d)
  # A test store needs no optimised code, and no database but LMDB.
  CARGO_TARGET_DIR=$build CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_INCREMENTAL=0 nice -n 10 cargo install --quiet --locked \
    --version "$1" --no-default-features --features bundled-libs,lmdb --root .cache/garage garage || { rm -rf "$build"; exit 1; }
  rm -rf "$build"
}

venv() { # folder, requirements
  local stamp="$1/.stamp"
  if cmp -s "$2" "$stamp"; then return; fi
  say "installing the Python packages of $2 into $1"
  if [ ! -x "$1/bin/python" ] && ! python3 -m venv "$1"; then
    rm -rf "$1"
    say "this Python cannot create virtual environments, trying virtualenv"
    python3 -m pip install --quiet --user virtualenv
    python3 -m virtualenv --quiet "$1"
  fi
  # Python compiles the modules that it imports. To compile them all takes longer.
  "$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-compile --requirement "$2"
  cp "$2" "$stamp"
}

# Programs that Debian 12 lacks or has too old: from Debian's next release, without its other packages.
unpack_unstable() { # folder, path in the packages, package..
  local apt files=$2 to=$1
  shift 2
  say "unpacking $* into $to"
  apt=$(mktemp -d)
  mkdir -p "$to" "$apt/lists/partial" "$apt/cache/archives/partial"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian unstable main" >"$apt/sources.list"
  printf '%s\n' "Dir::State::lists \"$apt/lists\";" "Dir::Cache \"$apt/cache\";" "Dir::Etc::sourcelist \"$apt/sources.list\";" \
    'Dir::Etc::sourceparts "-";' 'APT::Sandbox::User "root";' >"$apt/apt.conf"
  (
    cd "$apt"
    export APT_CONFIG=$apt/apt.conf
    apt-get update -qq
    apt-get download -qq "$@"
    for package in *.deb; do dpkg -x "$package" root; done
  )
  cp "$apt/root/$files"/* "$to/"
  rm -rf "$apt"
}

docker_plugins() { # folder
  [ -x "$1/docker-buildx" ] && [ -x "$1/docker-compose" ] && return
  unpack_unstable "$1" usr/libexec/docker/cli-plugins docker-buildx docker-compose
}

case "$selection" in
  test | bench) venv .venv scripts/requirements/test.txt ;;
  golden) venv .venv-golden scripts/requirements/golden.txt ;;
  stores) venv .venv-stores scripts/requirements/stores.txt ;;
  wheels) venv .venv-wheels scripts/requirements/wheels.txt ;;
  python) venv .venv-python scripts/requirements/python.txt ;;
  python-torch)
    venv .venv-python scripts/requirements/python.txt
    venv .venv-python-torch scripts/requirements/python-torch.txt
    ;;
  ray)
    venv .venv scripts/requirements/test.txt
    venv .venv-ray scripts/requirements/ray.txt
    ;;
  bench-python)
    venv .venv scripts/requirements/test.txt
    venv .venv-bench-python scripts/requirements/bench-python.txt
    ;;
  lint) venv .venv-lint scripts/requirements/lint.txt ;;
  deploy)
    venv .venv-deploy scripts/requirements/deploy.txt
    [ -x .cache/deploy/kustomize ] || unpack_unstable .cache/deploy usr/bin kustomize
    ;;
  golden-images) venv .venv-golden-images scripts/requirements/golden-images.txt ;;
  golden-tables) venv .venv-golden-tables scripts/requirements/golden-tables.txt ;;
  golden-tiffs) venv .venv-golden-tiffs scripts/requirements/golden-tiffs.txt ;;
  writers-parquet) venv .venv-writers-parquet scripts/requirements/writers-parquet.txt ;;
  e2e)
    venv .venv scripts/requirements/test.txt
    venv .venv-e2e scripts/requirements/e2e.txt
    venv .venv-e2e-duckdb scripts/requirements/e2e-duckdb.txt
    ;;
  writers-text-arrow) venv .venv-writers-text-arrow scripts/requirements/writers-text-arrow.txt ;;
  e2e-torch | e2e-tf | e2e-materialize) venv ".venv-$selection" "scripts/requirements/$selection.txt" ;;
  debian | golden-shards | ceph) ;;
  garage) garage 2.5.0 ;;
  containers)
    venv .venv scripts/requirements/test.txt
    docker_plugins .cache/engine/config/cli-plugins
    ;;
  suites)
    venv .venv scripts/requirements/test.txt
    venv .venv-suites scripts/requirements/suites.txt
    ;;
  *) say "unknown set '$selection': expected one of test, debian, golden, golden-images, golden-tables, golden-tiffs, golden-shards, writers-parquet, writers-text-arrow, bench, bench-python, e2e, e2e-torch, e2e-tf, e2e-materialize, suites, stores, ceph, garage, containers, python, python-torch, ray, wheels, lint, deploy"; exit 2 ;;
esac

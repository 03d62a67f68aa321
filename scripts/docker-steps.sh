#!/usr/bin/env bash
# Runs the steps of docker/Dockerfile for the gateway's image in clean Debian roots, without Docker, and starts the gateway
# there like the image would. Requires root. Usage: docker-steps.sh [PROGRAM]; default: target/release/pushdown-gateway
# BUILD=1 compiles the program in the root with this machine's Rust, which takes 20 minutes; without it PROGRAM is used.
# BENCH=1 also builds the images `data` and `bench`, and runs a small benchmark like the compose file. MODELS and PEERS are
# the arguments of these images, with the defaults efficientnet_lite0 and none. Roots and mounts are in their own namespace,
# in memory (2 GB; with BENCH=1 5 GB, with all peers 14 GB), so nothing is left behind.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" -eq 0 ] || { echo "docker-steps: creating roots and mounts requires root" >&2; exit 1; }
say() { printf 'docker-steps: %s\n' "$*"; }

if [ "${1:-}" != --inside ]; then
  program=${1:-${CARGO_TARGET_DIR:-target}/release/pushdown-gateway}
  if [ -z "${BUILD:-}" ] && [ ! -x "$program" ]; then
    say "$program does not exist: name a program, run \`make build\`, or set BUILD=1" >&2
    exit 1
  fi
  scripts/setup.sh lint
  if ! command -v debootstrap >/dev/null; then
    say "installing the Debian package debootstrap"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap </dev/null >/dev/null
  fi
  model=(.cache/models/*.onnx)
  if [ ! -e "${model[0]}" ]; then
    scripts/setup.sh
    scripts/models.sh efficientnet_lite0
  fi
  exec unshare --mount --pid --fork --kill-child --mount-proc "$0" --inside "$program"
fi

program=$2
roots=/mnt
mount -t tmpfs -o size=75%,mode=755 roots "$roots"
context=$roots/context
mkdir "$context"
git ls-files -z | tar --create --null --files-from=- | tar --extract --directory="$context"
# The instructions of each stage, by name.
.venv-lint/bin/python - docker/Dockerfile >"$roots/stages.json" <<'PYTHON'
import json, pathlib, shlex, sys
from dockerfile_parse import DockerfileParser
stages, name = {}, None
parser = DockerfileParser(fileobj=pathlib.Path(sys.argv[1]).open("rb"))
for step in parser.structure:
    if step["instruction"] == "FROM":
        name = step["value"].split(" AS ")[-1]
        stages[name] = []
    elif step["instruction"] != "COMMENT":
        value = shlex.split(step["value"]) if step["instruction"] in ("ARG", "ENV") else step["value"]
        stages[name].append({"do": step["instruction"], "with": value})
json.dump(stages, sys.stdout)
PYTHON

# Runs a command with the root's own programs, and with the registries, proxies and certificate authorities of this machine.
inside() { # root, command...
  local root=$1 passed=()
  shift
  for name in http_proxy https_proxy no_proxy PIP_INDEX_URL; do
    if [ -n "${!name:-}" ]; then passed+=("$name=${!name}"); fi
  done
  env -i PATH=/usr/local/cargo/bin:/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin HOME=/root \
    PIP_CERT=/trusted.pem CARGO_HTTP_CAINFO=/trusted.pem DEBIAN_FRONTEND=noninteractive "${passed[@]}" "${environment[@]}" chroot "$root" "$@"
}

# The same; prints output only on failure.
run() {
  inside "$@" >"$roots/log" 2>&1 </dev/null || { tail -n 40 "$roots/log" >&2; exit 1; }
}

# Expands earlier variables in a value, like ENV.
expanded() { # value
  local text=$1 known
  for known in "${environment[@]}"; do text=${text//"\$${known%%=*}"/${known#*=}}; done
  printf '%s\n' "${text//\$PATH//usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin}"
}

# Runs all instructions of a stage in its root, or in the root of the named base stage. Cache mounts are ignored.
environment=() folder=/
stage() { # name [from]
  local root=$roots/$1 instruction value from name
  if [ -n "${2:-}" ]; then
    mv "$roots/$2" "$root"
  else
    environment=() folder=/
  fi
  while IFS=$'\t' read -r instruction value; do
    case $instruction in
      WORKDIR) folder=$value; mkdir -p "$root$folder" ;;
      ENV) while read -r value; do environment+=("$(expanded "$value")"); done < <(jq -r '.[]' <<<"$value") ;;
      ARG)
        value=$(jq -r '.[0]' <<<"$value") name=${value%%=*}
        environment+=("$name=${!name:-${value#*=}}")
        ;;
      COPY)
        from=$context
        if [[ $value =~ ^--from=([a-z-]+)\ (.*)$ ]]; then from=$roots/${BASH_REMATCH[1]} value=${BASH_REMATCH[2]}; fi
        copy "$from" "$root" "$folder" "$value"
        ;;
      RUN)
        while [[ $value =~ ^--mount=[^\ ]+\ +(.*)$ ]]; do value=${BASH_REMATCH[1]}; done
        if [[ $value == cargo\ * && -z ${BUILD:-} ]]; then
          say "$1: NOT RUN: $value"
          continue
        fi
        say "$1: $value"
        run "$root" /bin/sh -c "cd $folder"$'\n'"$value"
        ;;
    esac
  done < <(jq -r --arg stage "$1" '.[$stage][] | [.do, (.with | if type == "array" then tojson else . end)] | join("\t")' \
    "$roots/stages.json")
}

copy() { # from, root, folder, "source... destination"
  local words destination
  read -r -a words <<<"$4"
  destination=${words[-1]}
  [[ $destination == /* ]] || destination=$3/$destination
  # Like Docker: a file goes into a folder, the content of a folder into one of that name.
  for word in "${words[@]:0:${#words[@]}-1}"; do
    if [ -d "$1/$word" ]; then
      mkdir -p "$2$destination"
      cp -r "$1/$word/." "$2$destination"
    else
      install -D "$1/$word" "$2$destination$([[ $destination == */ ]] && basename "$word")"
    fi
  done
}

root() { # name: a fresh copy of Debian
  cp -a "$roots/debian" "$roots/$1"
  mount -t proc proc "$roots/$1/proc"
}
# Not for the gateway's root: its certificate authorities have to come from its packages.
trust() { install -m 644 /etc/ssl/certs/ca-certificates.crt "$roots/$1/trusted.pem"; }
size() { du -xsm --exclude=proc --exclude="$1/models" "$1" | cut -f1; }

say "debian:bookworm-slim is replaced by debootstrap's minbase"
debootstrap --variant=minbase bookworm "$roots/debian" >"$roots/log" 2>&1 || { tail "$roots/log" >&2; exit 1; }
# Like Debian's image: its sources, and no files of apt after an installation.
rm -rf "$roots/debian/etc/apt/sources.list" "$roots"/debian/var/cache/apt/archives/*.deb "$roots"/debian/var/lib/apt/lists/*
echo 'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };' \
  >"$roots/debian/etc/apt/apt.conf.d/docker-clean"
cat >"$roots/debian/etc/apt/sources.list.d/debian.sources" <<'SOURCES'
Types: deb
URIs: http://deb.debian.org/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://deb.debian.org/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
SOURCES

say "rust:slim-bookworm is replaced by the same with ${BUILD:+"this machine's Rust and "}its C compiler"
root build
run "$roots/build" sh -c 'apt-get update && apt-get install -y --no-install-recommends ca-certificates gcc libc6-dev'
if [ -n "${BUILD:-}" ]; then
  mkdir -p "$roots/build/usr/local/cargo"
  mount --bind -o ro "$(rustc --print sysroot)" "$roots/build/usr/local/cargo"
fi
trust build
stage build
say "build: $(inside "$roots/build" sh -c 'cmake --version | head -n 1; nasm -v; g++ --version | head -n 1' | tr '\n' ';')"
if [ -z "${BUILD:-}" ]; then
  cargo metadata --offline --locked --no-deps --format-version 1 --manifest-path "$roots/build/src/Cargo.toml" >/dev/null
  say "build: the copied files are a complete workspace"
  strip -o "$roots/build/usr/local/bin/pushdown-gateway" "$program"
fi

say "python:slim-bookworm is replaced by the same with Debian's Python and pip"
root runtime
run "$roots/runtime" sh -c 'apt-get update && apt-get install -y --no-install-recommends python3-pip python-is-python3'
trust runtime
stage runtime

root gateway
stage gateway
unshare --net scripts/docker-steps-check.sh "$roots/gateway" "$roots/stages.json"
say "the image's files: $(size "$roots/gateway") MB, of it Debian $(size "$roots/debian") MB, the gateway" \
  "$(size "$roots/gateway/usr/local/bin/pushdown-gateway") MB, ONNX Runtime $(size "$roots/gateway/usr/local/lib/libonnxruntime.so") MB"
[ -n "${BENCH:-}" ] || exit 0

export MODELS=${MODELS:-efficientnet_lite0} PEERS=${PEERS:-none}
root data
run "$roots/data" sh -c 'apt-get update && apt-get install -y --no-install-recommends python3-pip python3-venv python-is-python3'
trust data
stage data
say "data: $(size "$roots/data") MB"
if [ -n "${BUILD:-}" ]; then
  stage build-bench build
else
  mkdir -p "$roots/build-bench/usr/local/bin"
  for name in file-reader object-reader pushdown pushdown-bench pushdown-gateway table-reader transfer-learning; do
    strip -o "$roots/build-bench/usr/local/bin/$name" "$(dirname "$program")/$name"
  done
fi
stage bench data
say "bench: $(size "$roots/bench") MB, with MODELS=$MODELS and PEERS=$PEERS"
unshare --net scripts/docker-steps-bench.sh "$roots/bench"

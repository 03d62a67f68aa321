#!/usr/bin/env bash
# Builds the release archive of this machine's processor into dist/, with its SBOMs and checksums, and tries it: unpacked in an empty
# folder, the gateway serves a folder and the client reads a photo through it.
# Usage: dist.sh [build|try ARCHIVE|notes VERSION]; without an argument `build`, then `try`
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
programs=${CARGO_TARGET_DIR:-target}/release
# Writes CycloneDX from Cargo.lock.
sbom_version=0.10.0
say() { printf 'dist: %s\n' "$*"; }

version() { "$cargo" pkgid --locked -p pushdown-gateway | sed 's/.*[#@]//'; }
name() { printf 'pushdown-%s-%s' "$(version)" "$(rustc -vV | sed -n 's/^host: //p')"; }

# The section of a version in CHANGELOG.md, for a tag that must be the version of the workspace.
notes() { # version
  [ "$1" = "$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)" ] || { say "Cargo.toml has another version than $1" >&2; exit 1; }
  local section
  section=$(awk -v version="## $1 " '/^## /{found = index($0 " ", version) == 1; if (found) next} found' CHANGELOG.md)
  [ -n "$section" ] || { say "CHANGELOG.md has no section for $1" >&2; exit 1; }
  printf '%s\n' "$section"
}

build() {
  local name folder
  name=$(name)
  folder=dist/$name
  scripts/setup.sh
  if ! command -v cargo-sbom >/dev/null; then
    say "installing cargo-sbom $sbom_version"
    "$cargo" install --quiet --locked cargo-sbom --version "$sbom_version"
  fi
  say "building $name"
  "$cargo" build --release --locked -p pushdown-gateway -p pushdown-cli
  # Not the wheels, which another script builds.
  rm -rf dist/pushdown-* dist/SHA256SUMS-*
  mkdir -p "$folder/bin" "$folder/docs"
  cp "$programs/pushdown-gateway" "$programs/pushdown" "$folder/bin/"
  cp LICENSE README.md CHANGELOG.md SECURITY.md "$folder/"
  cp -r docs/*.md docs/benchmarks "$folder/docs/"
  # The same sources result in the same archive.
  tar --create --directory=dist --sort=name --owner=0 --group=0 --numeric-owner \
    --mtime="@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" "$name" | gzip --no-name --best >"dist/$name.tar.gz"
  rm -r "$folder"
  for package in gateway cli; do
    "$cargo" sbom --cargo-package "pushdown-$package" --output-format cyclone_dx_json_1_6 >"dist/$name-$package.cdx.json"
  done
  (cd dist && sha256sum "$name"* >"SHA256SUMS-$name")
  du --apparent-size --block-size=1000000 "$programs/pushdown-gateway" "$programs/pushdown" "dist/$name.tar.gz" |
    while read -r megabytes file; do say "$megabytes MB  $file"; done
}

# Global, since the trap runs after `try` has returned.
folder='' gateway=''
clean_up() {
  if [ -n "$gateway" ]; then kill "$gateway" 2>/dev/null || true; fi
  if [ -n "$folder" ]; then rm -rf "$folder"; fi
}

try() { # archive
  trap clean_up EXIT
  folder=$(mktemp -d)
  tar --extract --file "$1" --directory "$folder" --strip-components=1
  mkdir -p "$folder/store/photos"
  cp testkit/fixtures/photos/*.jpg "$folder/store/photos/"
  local photo
  photo=$(cd "$folder/store/photos" && printf '%s\n' *.jpg | head -1)
  # Nothing but the archive: no variable of this shell, no library path.
  local clean=(env -i AWS_ACCESS_KEY_ID=dev AWS_SECRET_ACCESS_KEY=devsecret AWS_REGION=us-east-1 HOME="$folder")
  "${clean[@]}" "$folder/bin/pushdown-gateway" serve --store "$folder/store" --access-key dev --secret-key devsecret \
    --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --ready-file "$folder/ready" >"$folder/log" 2>&1 &
  gateway=$!
  for _ in {1..100}; do
    [ -e "$folder/ready" ] && break
    kill -0 "$gateway" 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
    sleep 0.1
  done
  local listen
  listen=$(sed 's/.*"listen": *"\([^"]*\)".*/\1/' "$folder/ready")
  "${clean[@]}" "$folder/bin/pushdown" get "s3://photos/$photo" --pipeline 'decode | resize(64, 48)' \
    --endpoint-url "http://$listen" --output "$folder/photo.npy"
  # 64 x 48 pixels of 3 bytes after a header of 128 bytes.
  local bytes
  bytes=$(stat --format=%s "$folder/photo.npy")
  [ "$bytes" = $((64 * 48 * 3 + 128)) ] || { say "$photo has $bytes bytes as npy" >&2; exit 1; }
  kill "$gateway"
  wait "$gateway"
  gateway=''
  say "$(basename "$1") works: $("$folder/bin/pushdown-gateway" --version) served $photo as 64 x 48 pixels"
}

case ${1:-all} in
  build) build ;;
  try) try "$2" ;;
  notes) notes "$2" ;;
  all) build && try "dist/$(name).tar.gz" ;;
  *) say "unknown command '$1': expected build, try or notes" >&2; exit 2 ;;
esac

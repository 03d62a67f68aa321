#!/usr/bin/env bash
# Builds the wheels of this machine's processor into dist/wheels, and tries them: installed in an empty environment, the gateway serves
# a folder and the three lines of the README read photos in folders by class.
# Usage: wheels.sh [build|try]; without an argument both
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf 'wheels: %s\n' "$*"; }
wheels=$PWD/dist/wheels
# The most bytes of the client's wheel.
max_bytes=60000000

build() {
  scripts/setup.sh
  scripts/setup.sh wheels
  rm -rf "$wheels"
  mkdir -p "$wheels"
  # Zig links against the symbols of glibc 2.28, whatever this machine has.
  local options=(--release --locked --out "$wheels" --compatibility manylinux_2_28 --zig)
  local path=$PWD/.venv-wheels/bin:$PATH
  for package in python python/gateway; do
    say "building $package"
    # In the folder of its pyproject.toml, which maturin would not find from the manifest of the gateway's crate.
    (cd "$package" && PATH=$path maturin build "${options[@]}")
  done
  du --apparent-size --block-size=1000000 "$wheels"/*.whl | while read -r megabytes file; do say "$megabytes MB  ${file##*/}"; done
  [ "$(stat -c %s "$wheels"/pushdown_client-*.whl)" -le "$max_bytes" ] || { say "the client's wheel has more than $max_bytes bytes" >&2; exit 1; }
}

# Global, since the trap runs after `try` has returned.
folder='' gateway=''
clean_up() {
  if [ -n "$gateway" ]; then kill "$gateway" 2>/dev/null || true; fi
  if [ -n "$folder" ]; then rm -rf "$folder"; fi
}

try() {
  folder=$(mktemp -d)
  trap clean_up EXIT
  python3 -m venv "$folder/venv"
  say "installing pushdown-client[server] and numpy"
  "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --find-links "$wheels" 'pushdown-client[server]' numpy
  mkdir -p "$folder/store/photos/train/exif" "$folder/store/photos/train/other"
  cp testkit/fixtures/photos/jpeg_exif_*.jpg "$folder/store/photos/train/exif/"
  cp testkit/fixtures/photos/jpeg_4*.jpg "$folder/store/photos/train/other/"
  cd "$folder"
  export AWS_ACCESS_KEY_ID=dev AWS_SECRET_ACCESS_KEY=devsecret AWS_REGION=us-east-1
  PATH="$folder/venv/bin:$PATH" pushdown-gateway serve --store store --access-key dev --secret-key devsecret \
    --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --ready-file ready.json </dev/null >log 2>&1 &
  gateway=$!
  for _ in $(seq 600); do [ -f ready.json ] && break; sleep 0.1; done
  AWS_ENDPOINT_URL_S3="http://$(sed -n 's/.*"listen":"\([^"]*\)".*/\1/p' ready.json)"
  export AWS_ENDPOINT_URL_S3
  "$folder/venv/bin/python" - <<'PYTHON'
import pushdown
reader = pushdown.Reader("s3://photos/train/", "decode | random_resized_crop(64) | flip_h | to_float | normalize(imagenet)",
                         batch_size=4, labels="dir", seed=7)
for batch in reader: print(batch.x.shape, batch.x.dtype, [reader.classes[label] for label in memoryview(batch.y)])
print(reader.stats)
PYTHON
  "$folder/venv/bin/pushdown" get s3://photos/train/other/jpeg_444.jpg -p 'decode | resize(64, 64) | encode(jpeg)' -o small.jpg
  say "the wheels work: $(stat -c %s small.jpg) bytes of a photo through the command line"
}

case "${1:-all}" in
  build) build ;;
  try) try ;;
  all) build && try ;;
  *) echo "usage: wheels.sh [build|try]" >&2; exit 2 ;;
esac

#!/usr/bin/env bash
# Fetches real photos from Debian packages into .cache/photos and derives the sets that demo and benchmarks use.
# Nothing is installed. Usage: photos.sh [large|all]
#   large     originals of 1 to 8 megapixels
#   imagenet  about 500 x 375, as ImageNet's are
#   12mp      12 megapixels, baseline and progressive
set -euo pipefail
cd "$(dirname "$0")/.."
want=${1:-all}
cache=.cache/photos
packages=(plasma-workspace-wallpapers mate-backgrounds)

if [ ! -e "$cache/.large" ]; then
  echo "photos: downloading ${packages[*]} (about 200 MB)"
  mkdir -p "$cache/deb" "$cache/large"
  root=()
  [ "$(id -u)" -eq 0 ] || root=(sudo)
  for package in "${packages[@]}"; do
    (cd "$cache/deb" && (apt-get download -qq "$package" 2>/dev/null || { "${root[@]}" apt-get update -qq && apt-get download -qq "$package"; }))
  done
  for deb in "$cache"/deb/*.deb; do dpkg-deb --extract "$deb" "$cache/unpacked"; done
  # By content, so that links and copies count once.
  find "$cache/unpacked" -type f \( -name '*.jpg' -o -name '*.jpeg' \) -size +100k -exec sha256sum {} + |
    sort -u -k1,1 | awk '{ print $2 }' | sort | while read -r photo; do
      cp "$photo" "$cache/large/$(sha256sum "$photo" | cut -c1-12).jpg"
    done
  rm -rf "$cache/deb" "$cache/unpacked"
  touch "$cache/.large"
fi
if [ "$want" = all ] && [ ! -e "$cache/.derived" ]; then
  echo "photos: deriving the 500 x 375 and the 12-megapixel sets"
  .venv/bin/python scripts/photos.py "$cache"
  touch "$cache/.derived"
fi
echo "photos: $(find "$cache/large" -name '*.jpg' | wc -l) large photos, $(du -sh "$cache" | cut -f1) in all"

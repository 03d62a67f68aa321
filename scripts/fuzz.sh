#!/usr/bin/env bash
# Fuzzes a target of fuzz/ by libFuzzer: fuzz.sh parquet|arrow|text [SECONDS], what `make fuzz` runs. Starts from the files of the
# test kit; what breaks is left in fuzz/artifacts. Coverage guides it through our own crates; those of others are built as ever.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:-parquet} seconds=${2:-60}
corpus=fuzz/corpus/$target

case $target in
  parquet) files=(testkit/fixtures/tables/*.parquet) ;;
  arrow) files=(testkit/fixtures/tables/*.{arrow,arrows}) ;;
  text) files=(testkit/fixtures/tables/*.{csv,tsv,jsonl,gz,zst}) ;;
  *) echo "fuzz: found the target \`$target\`, expected parquet, arrow or text" >&2; exit 2 ;;
esac
mkdir -p "$corpus" fuzz/artifacts
# The first byte chooses the query: each file comes with each of the eight.
for file in "${files[@]}"; do
  for query in 0 1 2 3 4 5 6 7; do
    { printf '%b' "\\x0$query"; cat "$file"; } >"$corpus/$(basename "$file").$query"
  done
done

RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/fuzz-rustc.sh \
  "${CARGO:-cargo}" build --locked -p pushdown-fuzz --features libfuzzer --bin "fuzz-$target"
exec "${CARGO_TARGET_DIR:-target}/debug/fuzz-$target" "$corpus" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
  -artifact_prefix=fuzz/artifacts/ -print_final_stats=1

#!/usr/bin/env bash
# Fuzzes a target of fuzz/ with libFuzzer, for `make fuzz`. Usage: fuzz.sh parquet|arrow|text|png|bmp|gif|tiff|webp|jpeg|crop|auth|chunked|shard|sql [SECONDS]
# Starts from the files of the test kit and writes failing inputs to fuzz/artifacts. Only our own crates have coverage counters.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:-parquet} seconds=${2:-60}
corpus=fuzz/corpus/$target
tables=testkit/fixtures/tables
# All image formats share one target and differ in their seeds. Its limits are small, so it needs little memory.
binary=fuzz-image memory=768

shopt -s nullglob
case $target in
  parquet) binary=fuzz-parquet memory=2048 files=("$tables"/*.parquet) ;;
  arrow) binary=fuzz-arrow memory=2048 files=("$tables"/*.{arrow,arrows}) ;;
  text) binary=fuzz-text memory=2048 files=("$tables"/*.{csv,tsv,jsonl,gz,zst}) ;;
  png | bmp | gif | webp) files=(testkit/fixtures/*/*."$target") ;;
  tiff) files=(testkit/fixtures/*/*.tif) ;;
  jpeg) files=(testkit/fixtures/*/*.jpg) ;;
  crop) binary=fuzz-crop files=() ;;
  auth) binary=fuzz-auth files=() ;;
  chunked) binary=fuzz-chunked files=() ;;
  shard) binary=fuzz-shard files=() ;;
  sql) binary=fuzz-sql memory=2048 files=() ;;
  *) echo "fuzz: unknown target: expected parquet, arrow, text, png, bmp, gif, tiff, webp, jpeg, crop, auth, chunked, shard or sql, found \`$target\`" >&2; exit 2 ;;
esac
mkdir -p "$corpus" fuzz/artifacts
# The first byte selects the query: each file is a seed for each of the eight.
for file in "${files[@]}"; do
  for query in 0 1 2 3 4 5 6 7; do
    { printf '%b' "\\x0$query"; cat "$file"; } >"$corpus/$(basename "$file").$query"
  done
done
# Four bytes choose the payload mode, the size of pieces, and a change.
if [ "$target" = chunked ]; then
  for mode in 0 1 2; do
    printf '%b' "\\x0$mode\\x05\\x00\\x005\\r\\nhello\\r\\n3\\r\\nabc\\r\\n0\\r\\nx-amz-checksum-crc32:AAAAAA==\\r\\n\\r\\n" >"$corpus/trailer.$mode"
    printf '%b' "\\x0$mode\\x05\\x00\\x005\\r\\nhello\\r\\n0\\r\\n\\r\\n" >"$corpus/no-trailer.$mode"
  done
fi
# The first byte chooses the format, and whether checksums are mended, the second one the size of pieces.
if [ "$target" = shard ]; then
  for file in pushdown/shard/tests/golden/*.{tar,zip}; do
    choices=(0 2)
    [ "${file##*.}" = tar ] || choices=(1)
    for choice in "${choices[@]}"; do
      { printf '%b' "\\x0$choice\\x40"; cat "$file"; } >"$corpus/$(basename "$file").$choice"
    done
  done
fi
# The first byte chooses between text and the choices of a grammar.
if [ "$target" = sql ]; then
  number=0
  while IFS= read -r query; do
    printf '%b%s' '\x00' "$query" >"$corpus/text.$number"
    number=$((number + 1))
  done <<'EOF'
select * from object where n > 1 order by m limit 3
with a as (select n + n as n from object), b as (select n + n as n from a) select n from b where n > 5
with a as (select * from object union all select * from object) select * from a union select * from a
select sum(n) over w, case when m is null then 'a' else text end as c from object window w as (partition by m order by n)
select m, count(*) as c from object where text like '%a' and n in (1, 2, 3) or n between 1 and 5 group by m having count(*) > 1
select (select max(n) from object) as x, position('a' in text), cast(n as varchar), [n, m], {'a': n} from object
EOF
fi
# Six bytes choose the pipeline and the region.
if [ "$target" = crop ]; then
  for file in testkit/fixtures/*/*.jpg; do
    for choice in 0 1 3 6 9; do
      { printf '%b' "\\x0$choice\\x18\\x10\\x14\\x10\\x18"; cat "$file"; } >"$corpus/$(basename "$file").$choice"
    done
  done
fi
# Three bytes choose the reading that is signed, and a change. The dollar sign becomes the signature.
if [ "$target" = auth ]; then
  scope=20260101/us-east-1/s3/aws4_request
  for choice in 0 1 2 3; do
    printf '%b' "\\x0$choice\\x00\\x00" >"$corpus/header.$choice"
    cat >>"$corpus/header.$choice" <<EOF
GET /photos/a%20b//c+d?list-type=2&prefix=x+y
host:gateway
x-amz-date:20260101T000000Z
x-amz-content-sha256:UNSIGNED-PAYLOAD
authorization:AWS4-HMAC-SHA256 Credential=FUZZEDACCESSKEY1/$scope, SignedHeaders=host;x-amz-date, Signature=\$
EOF
    printf '%b' "\\x0$choice\\x00\\x00" >"$corpus/query.$choice"
    cat >>"$corpus/query.$choice" <<EOF
GET /a?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=20260101T000000Z&X-Amz-Expires=600&X-Amz-SignedHeaders=host&X-Amz-Signature=\$&X-Amz-Credential=FUZZEDACCESSKEY1%2F${scope//\//%2F}
host:photos.s3.lab.example
EOF
  done
fi

RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/fuzz-rustc.sh \
  "${CARGO:-cargo}" build --locked --workspace --features pushdown-fuzz/libfuzzer --bin "$binary"
exec "${CARGO_TARGET_DIR:-target}/debug/$binary" "$corpus" -max_total_time="$seconds" -timeout=20 -rss_limit_mb="$memory" \
  -artifact_prefix=fuzz/artifacts/ -print_final_stats=1

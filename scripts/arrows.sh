#!/usr/bin/env bash
# Checks that dependencies inside the workspace run in one direction, and that the pipeline crate does no network I/O.
set -euo pipefail
cd "$(dirname "$0")/.."

# From -> to. The facade `pushdown` re-exports the crates below it, which gateway, client, cli, python, examples and bench use through it.
allowed='
  pushdown-image>pushdown-core pushdown-model>pushdown-core pushdown-plan>pushdown-core pushdown-wire>pushdown-core pushdown-wire>pushdown-s3 pushdown-wire>pushdown-shard
  pushdown-table>pushdown-core pushdown-table>pushdown-wire
  pushdown>pushdown-core pushdown>pushdown-image pushdown>pushdown-model pushdown>pushdown-plan pushdown>pushdown-shard pushdown>pushdown-table pushdown>pushdown-wire
  pushdown-bench>pushdown pushdown-bench>pushdown-client pushdown-bench>pushdown-testkit
  pushdown-cli>pushdown pushdown-cli>pushdown-client
  pushdown-client>pushdown pushdown-client>pushdown-exec pushdown-client>pushdown-s3
  pushdown-fuzz>pushdown pushdown-fuzz>pushdown-gateway pushdown-fuzz>pushdown-testkit
  pushdown-gateway>pushdown pushdown-gateway>pushdown-exec pushdown-gateway>pushdown-s3
  pushdown-python>pushdown pushdown-python>pushdown-cli pushdown-python>pushdown-client pushdown-python>pushdown-exec
  transfer-learning>pushdown transfer-learning>pushdown-client
'
allowed=$(tr -s ' \n' ' ' <<<"$allowed")
edges=$(cargo metadata --format-version 1 --no-deps --locked | jq -r '
  [.packages[].name] as $ours
  | .packages[] | .name as $from
  | .dependencies[] | select(.kind == null) | select(.name as $name | $ours | index($name))
  | "\($from)>\(.name)"' | sort -u)

wrong=0
for edge in $edges; do
  case "$allowed" in
    *" $edge "*) ;;
    *) echo "arrows: $edge is not allowed; allowed:$allowed" >&2; wrong=1 ;;
  esac
done
for crate in hyper reqwest rustls aws-sdk-s3 s3s; do
  if cargo tree --locked -p pushdown --edges normal --prefix none | grep -q "^$crate v"; then
    echo "arrows: pushdown must not depend on network crates, found $crate" >&2
    wrong=1
  fi
done
for crate in datafusion ort onnx-protobuf; do
  if cargo tree --locked -p pushdown-cli --no-default-features --edges normal --prefix none | grep -q "^$crate"; then
    echo "arrows: a client and its command line without the features models and tables must not depend on $crate" >&2
    wrong=1
  fi
done
if cargo tree --locked -p pushdown --edges features,normal --prefix none | grep -q '^tokio feature "net"'; then
  echo "arrows: pushdown must not depend on network crates, found tokio with sockets" >&2
  wrong=1
fi
for crate in aws-lc-sys openssl-sys; do
  if cargo tree --locked --workspace --prefix none | grep -q "^$crate v"; then
    echo "arrows: expected rustls with ring as the only TLS library, found $crate" >&2
    wrong=1
  fi
done
[ "$wrong" -eq 0 ] && echo "arrows: $(wc -w <<<"$edges") edges, all allowed"
exit "$wrong"

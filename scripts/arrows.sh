#!/usr/bin/env bash
# Checks that dependencies inside the workspace, and inside the client, run in one direction, and that the pipeline crate does no network
# I/O.
set -euo pipefail
cd "$(dirname "$0")/.."

# From -> to. The facade `pushdown` re-exports the crates below it, which gateway, client, cli, python, examples and bench use through it.
allowed='
  pushdown-image>pushdown-core pushdown-model>pushdown-core pushdown-plan>pushdown-core pushdown-wire>pushdown-core pushdown-wire>pushdown-s3 pushdown-wire>pushdown-shard
  pushdown-part>pushdown-core pushdown-part>pushdown-shard pushdown-part>pushdown-wire
  pushdown-table>pushdown-core pushdown-table>pushdown-wire
  pushdown>pushdown-core pushdown>pushdown-image pushdown>pushdown-model pushdown>pushdown-part pushdown>pushdown-plan pushdown>pushdown-shard pushdown>pushdown-table pushdown>pushdown-wire
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

# Inside the client: folder -> folder, where a file at the top is a folder as well, and each kind of units is one. All may use `error`. What a
# chapter re-exports (`pub use`) is its table of contents, no dependency.
client_allowed='
  batch>sample_name cpu>epoch error_policy>batch models>atomic_write models>store models>transport objects>atomic_write retry>outage_log retry>stats
  sample_name>objects sign>objects stats>value_cache transport>stats value_cache>objects measure>stats
  shards>atomic_write shards>objects
  store>engine store>measure store>objects store>outage_log store>retry store>sample_name store>shards store>sign store>stats store>transport store>weights
  epoch>batch epoch>error_policy epoch>stats
  planning>epoch planning>measure planning>objects planning>stats planning>store planning>weights
  materialize>cpu materialize>models materialize>objects materialize>sample_name materialize>sign materialize>store materialize>transport
  materialize>weights
  monitor>planning monitor>stats monitor>store
  units/objects>batch units/objects>cpu units/objects>engine units/objects>epoch units/objects>error_policy units/objects>measure
  units/objects>monitor units/objects>objects units/objects>planning units/objects>sample_name units/objects>sign units/objects>stats units/objects>store
  units/objects>transport units/objects>value_cache units/objects>weights
  units/rows>batch units/rows>cpu units/rows>engine units/rows>epoch units/rows>monitor units/rows>objects
  units/rows>planning units/rows>stats units/rows>store units/rows>weights
  units/shards>batch units/shards>cpu units/shards>epoch units/shards>error_policy units/shards>monitor units/shards>objects
  units/shards>planning units/shards>sample_name units/shards>shards units/shards>stats units/shards>store
  reader>cpu reader>epoch reader>error_policy reader>models reader>objects reader>planning reader>retry reader>shards reader>stats
  reader>store reader>transport reader>units reader>units/objects reader>units/rows reader>units/shards reader>value_cache reader>weights
'
client_allowed=$(tr -s ' \n' ' ' <<<"$client_allowed")
# A line for each import: the file, and the folder that it imports.
client_imports() {
  # shellcheck disable=SC2016 # These are fields of awk.
  git ls-files -- 'client/src/*.rs' | grep -vE '/(tests|lib)\.rs$|/tests/' | xargs awk '
    FNR == 1 { is_open = is_test = 0 }
    /^mod tests \{/ { is_test = 1 }
    !is_test && /^ *(pub\([a-z]+\) )?use crate::/ { is_open = 1; printf "%s ", FILENAME; sub(/.*use crate::/, "") }
    is_open { gsub(/ /, ""); printf "%s", $0 }
    is_open && /;$/ { is_open = 0; print "" }' |
    sed -E ':inner; s/::\{[^{}]*\}//; t inner; s/[{};]//g' |
    awk '{ count = split($2, paths, ","); for (path = 1; path <= count; path++) if (paths[path]) print $1, paths[path] }' |
    sed -E 's#^([^ ]*) units::([a-z_]+).*#\1 units/\2#; s#::.*##'
}
client_edges=0
while read -r file to; do
  from=${file#client/src/}
  case "$from" in
    units/*/*) from=units/$(cut -d/ -f2 <<<"$from") ;;
    units/*) from=${from%.rs} ;;
    *) from=${from%%/*} from=${from%.rs} ;;
  esac
  { [ "$from" = "$to" ] || [ "$to" = error ]; } && continue
  client_edges=$((client_edges + 1))
  case "$client_allowed" in
    *" $from>$to "*) ;;
    *) echo "arrows: $file imports \`$to\`, but client/src/$from may not use it: move what both need to a folder that they may use" >&2; wrong=1 ;;
  esac
done < <(client_imports)
if ! tr ' ' '\n' <<<"$client_allowed" | sed 's/>/ /' | tsort >/dev/null; then
  echo "arrows: the arrows of the client that are allowed must have no circle" >&2
  wrong=1
fi
[ "$wrong" -eq 0 ] && echo "arrows: $(wc -w <<<"$edges") edges between crates and $client_edges imports in the client, all allowed"
exit "$wrong"

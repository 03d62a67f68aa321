#!/usr/bin/env bash
# Checks that debug builds compiled DataFusion once, and once more only to check it (clippy, rustdoc): every command of Makefile and CI
# has to select one set of features. Counts what is newer than the manifests and the compiler, so an upgrade is no second build.
set -euo pipefail
cd "$(dirname "$0")/.."
newest=Cargo.lock
for file in Cargo.toml ./*/Cargo.toml pushdown/*/Cargo.toml "$(rustc --print sysroot)/bin/rustc"; do
  if [ "$file" -nt "$newest" ]; then newest=$file; fi
done

builds() { # suffix
  find "${CARGO_TARGET_DIR:-target}/debug/deps" -name "libdatafusion_sql-*.$1" -newer "$newest"
}

compiled=$(builds rlib) checked=$(builds rmeta)
if [ "$(wc -w <<<"$compiled")" -gt 1 ] || [ "$(wc -w <<<"$checked")" -gt 2 ]; then
  echo "one-build: two commands selected different features of dependencies:" >&2
  printf '%s\n%s\n' "$compiled" "$checked" >&2
  exit 1
fi

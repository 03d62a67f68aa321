#!/usr/bin/env bash
# Prints the lines of the Rust crates, without tests, and of the Python package: comments and blank lines count, generated files do not.
# Usage: lines.sh [REVISION]   (default: the files in git's index)
set -euo pipefail
cd "$(dirname "$0")/.."
revision=${1:-}
# Inline tests end a file.
before_tests() {
  awk '
    /^#\[cfg\(test\)\]$/ { attribute = $0; next }
    attribute && /^mod [a-z_]+ \{$/ { is_test = 1 }
    is_test { next }
    attribute { print attribute; attribute = "" }
    { print }'
}
# A file of the index may not exist in the revision.
text() { git show "$revision:$1" 2>/dev/null || true; }
{
  git ls-files ${revision:+--with-tree="$revision"} -- '*.rs' |
    grep -vE '(^|/)(tests|benches)(/|\.rs$)|^(testkit|fuzz|bench|examples)/'
  git ls-files ${revision:+--with-tree="$revision"} -- 'python/python/pushdown/*.py'
} | sort -u | while read -r file; do
  lines=$(text "$file" | before_tests | wc -l)
  case $file in
    *.py) part="python package" ;;
    pushdown/src/*) part=pushdown ;;
    pushdown/*) part=pushdown/$(cut -d/ -f2 <<<"$file") ;;
    *) part=$(cut -d/ -f1 <<<"$file") ;;
  esac
  printf '%s\t%s\n' "$part" "$lines"
done | awk -F'\t' '
  { lines[$1] += $2; if ($1 == "python package") python += $2; else rust += $2 }
  END {
    for (part in lines) printf "%-20s %7d\n", part, lines[part] | "sort"
    close("sort")
    printf "%-20s %7d\n%-20s %7d\n", "Rust", rust, "Python", python
  }'

#!/usr/bin/env bash
# Compiles a crate of the workspace with the coverage counters that guide libFuzzer. Build scripts and macros run in the compiler's
# process or before it, without libFuzzer: they get none.
case " $* " in
  *" --crate-name build_script_build "* | *" --crate-type proc-macro "*) exec "$@" ;;
esac
exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table

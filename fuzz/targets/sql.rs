//! Any bytes as SQL. The first byte chooses between text and the choices of a grammar.
#![no_main]

libfuzzer_sys::fuzz_target!(
    // Removes libFuzzer's panic hook: it aborts even on panics of the planner that are caught.
    init: drop(std::panic::take_hook()),
    |input: &[u8]| pushdown_fuzz::sql(input)
);

//! Any bytes as Parquet. The first byte selects the query.
#![no_main]

libfuzzer_sys::fuzz_target!(
    // Removes libFuzzer's panic hook: it aborts even on panics of decoders that are caught.
    init: drop(std::panic::take_hook()),
    |input: &[u8]| pushdown_fuzz::parquet(input)
);

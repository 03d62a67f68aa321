//! Any bytes as images. The first byte selects the pipeline. The seeds determine the format.
#![no_main]

libfuzzer_sys::fuzz_target!(
    // Removes libFuzzer's panic hook: it aborts even on panics of decoders that are caught.
    init: drop(std::panic::take_hook()),
    |input: &[u8]| pushdown_fuzz::image(input)
);

//! Images of any bytes; the first one chooses the pipeline. Seeds decide which format it is about.
#![no_main]

libfuzzer_sys::fuzz_target!(
    // A panic of a decoder that is caught is no defect of ours: only those that come out here end the run.
    init: drop(std::panic::take_hook()),
    |input: &[u8]| pushdown_fuzz::image(input)
);

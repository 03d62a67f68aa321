//! Any bytes as the head of a request in re-sign mode. The first three bytes choose how it is signed and changed.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pushdown_fuzz::auth(input));

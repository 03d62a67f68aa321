//! CSV, JSON lines and what is compressed, of any bytes; the first one chooses the query.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pushdown_fuzz::text(input));

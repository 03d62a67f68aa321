//! Any bytes as tars and zips. The first two bytes choose the format and how it is read.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pushdown_fuzz::shard(input));

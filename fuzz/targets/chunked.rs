//! Any bytes as the body of an upload in `aws-chunked` framing. The first four bytes choose how it is sent.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pushdown_fuzz::chunked(input));

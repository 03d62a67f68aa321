//! Any bytes as objects of which a part is sent as a cropped JPEG. Six bytes choose the pipeline and the region.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pushdown_fuzz::crop(input));

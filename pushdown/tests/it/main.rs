//! Integration tests of the crate, in one binary: properties of every pipeline, every image and every split.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_in_result,
    clippy::unwrap_used,
    reason = "clippy exempts tests, but not their helpers; a missing fixture has to fail the test"
)]

mod cropped_jpeg;
mod external_models;
mod generate;
mod golden;
mod golden_images;
mod golden_tables;
mod golden_tiffs;
mod language;
mod law1;
mod law1_tables;
mod model_parts;
mod models;
mod recorded;
mod robustness;
mod semantics_doc;
mod small_models;
mod writers_parquet;
mod writers_text_arrow;

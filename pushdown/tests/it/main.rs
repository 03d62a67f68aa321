//! The crate from outside, in one binary: what holds for every pipeline, every image and every split.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_in_result,
    clippy::unwrap_used,
    reason = "clippy spares tests, but not their helpers: a fixture that cannot be made is a failure"
)]

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
mod robustness;
mod semantics_doc;
mod small_models;
mod writers_parquet;
mod writers_text_arrow;

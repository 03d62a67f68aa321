//! The crate from outside, in one binary: what holds for every pipeline, every image and every split.

mod generate;
mod golden;
mod language;
mod law1;
mod robustness;
mod semantics_doc;

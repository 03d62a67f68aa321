//! The pipeline language of pushdown, its operators, and the wire formats.
//!
//! A [`Pipeline`] is an ordered list of typed steps over one [`Sample`]. Any stretch of it can run anywhere:
//! the gateway runs the prefix `[0, k)` next to the store, the client runs the suffix `[k, n)`, and both link
//! this crate, so where a step runs never changes what it computes.
//!
//! ```
//! use pushdown::{Context, Kind, Pipeline, Sample};
//!
//! let pipeline = Pipeline::parse("decode | resize(short=256) | center_crop(224) | to_float")?;
//! assert_eq!(pipeline.kinds()[4].fixed_shape().map(|(_, shape)| shape), Some(vec![3, 224, 224]));
//!
//! # let object: Vec<u8> = Vec::new();
//! let context = Context::new(b"photos/cat.jpg");
//! let answer = pipeline.run(0..pipeline.len(), Sample::Bytes(object.into()), &context);
//! assert!(answer.is_err(), "no bytes, no photo");
//! # Ok::<(), pushdown::Error>(())
//! ```
//!
//! A pipeline that makes a table can read its object in parts, from a [`Source`], and give rows as they come:
//! [`Pipeline::scan`].
//!
//! This crate does no model I/O. The only files it reads are ONNX models and the ONNX Runtime library.

mod cancellation;
mod dtype;
mod engine;
mod error;
mod fuse;
mod kind;
pub mod limits;
mod media;
pub mod pipeline;
pub mod plan;
mod run;
mod sample;
mod scan;
mod source;
pub mod step;
mod table;
pub mod wire;

pub use cancellation::Cancellation;
pub use dtype::{DType, Layout};
pub use engine::{ENGINE, Engine};
pub use error::{Error, ErrorKind, Result};
pub use kind::{BytesKind, ImageKind, Kind, TableKind, TensorKind};
pub use limits::{Limits, TableLimits};
pub use media::{ImageHeader, MediaType};
pub use pipeline::Pipeline;
pub use run::{Context, Peak, Timed};
pub use sample::{Image, Sample, Tensor};
pub use scan::{BatchMapping, Estimate, MergeRule, Scan, SchemaMerger, SchemaRule};
pub use source::{Source, Suffix};
pub use step::Step;
pub use step::table::{Description, describe};
pub use table::{Table, TableBuilder};

/// The example of `docs/ADDING_A_STEP.md`, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../docs/ADDING_A_STEP.md")]
struct AddingAStep;

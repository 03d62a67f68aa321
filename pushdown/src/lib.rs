//! The pipeline language of pushdown, its operators, and the wire formats.
//!
//! A [`Pipeline`] is an ordered list of typed steps over one [`Sample`]. Any range of its steps can run on any host:
//! the gateway runs the prefix `[0, k)` next to the store, the client runs the suffix `[k, n)`. Both link this crate,
//! so a step computes the same value at both.
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
//! assert!(answer.is_err(), "an empty object is not a photo");
//! # Ok::<(), pushdown::Error>(())
//! ```
//!
//! A pipeline that produces a table can read its object in parts, from a [`Source`], and stream the rows:
//! [`Pipeline::scan`].
//!
//! No network I/O. The only files read are ONNX models and the ONNX Runtime library.

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
pub use run::{Context, PeakMemory, StepTiming};
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

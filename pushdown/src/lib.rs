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

mod costs;
mod crop;
mod engine;
mod fuse;
pub mod pipeline;
mod request;
mod run;
mod scan;
mod split;
pub mod step;

pub use engine::{available_engine, engine_of};
pub use pipeline::Pipeline;
pub use pushdown_core::{
    BytesKind, Cancellation, Codec, Context, CropPosition, CroppedJpeg, DType, Engine, Error, ErrorKind,
    Estimate, Family, Image, ImageHeader, ImageKind, Inflater, Kind, Layout, Limits, MediaType, Result,
    Sample, Source, Suffix, Table, TableBuilder, TableKind, TableLimits, Tensor, TensorKind, limits,
    media::{JpegHeader, Subsampling},
    uuid,
};
pub use pushdown_part as part;
pub use pushdown_plan as plan;
pub use pushdown_shard as shard;
#[cfg(feature = "tables")]
pub use pushdown_table::{Description, describe};
pub use run::{PeakMemory, StepTiming};
pub use scan::{BatchMapping, MergeRule, Scan, SchemaMerger, SchemaRule};
pub use step::Step;

/// Wire formats between the gateway and its readers: those of `pushdown-wire`, and the request of a batch.
pub mod wire {
    pub use pushdown_wire::*;

    pub use crate::request::{BatchRequest, MAX_REQUEST_BYTES, PartRequest, PartTarget};
}

/// The example of `docs/ADDING_A_STEP.md`, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../docs/ADDING_A_STEP.md")]
struct AddingAStep;

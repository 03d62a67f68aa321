//! Values, kinds, errors and limits of pushdown, the language of pipelines, and the interfaces of steps.
//!
//! No step, no decoder of pixels and no query engine is in this crate. No network I/O and no file.

mod cancellation;
mod context;
mod cropped_jpeg;
mod dtype;
mod engine;
mod error;
mod estimate;
mod inflate;
mod kind;
pub mod language;
pub mod limits;
pub mod media;
mod numbers;
mod sample;
mod source;
pub mod step;
pub mod table;
pub mod uuid;

pub use cancellation::Cancellation;
pub use context::Context;
pub use cropped_jpeg::{CropPosition, CroppedJpeg};
pub use dtype::{DType, Layout};
pub use engine::{Engine, Family, RuntimeIdentity};
pub use error::{Error, ErrorKind, Result};
pub use estimate::Estimate;
pub use inflate::{Codec, Inflater};
pub use kind::{BytesKind, ImageKind, Kind, TableKind, TensorKind};
pub use limits::{Limits, TableLimits};
pub use media::{ImageHeader, MediaType};
pub use numbers::float;
pub use sample::{Element, Image, Sample, Tensor};
pub use source::{Source, Suffix};
pub use table::{Table, TableBuilder};

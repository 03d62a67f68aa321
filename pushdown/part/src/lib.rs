//! Parts of a materialized data set: objects with the values that a pipeline computed of a stretch of its samples.
//!
//! A [`PartWriter`] writes one part in memory, as a `WebDataset` shard or as a Parquet file. Equal rows give equal bytes, wherever they
//! are written: no I/O, no clock, no threads, and fixed settings.
//!
//! ```
//! use pushdown_core::{Kind, Sample};
//! use pushdown_part::{Label, LabelType, PartFormat, PartRow, PartSpec, PartWriter};
//!
//! let spec = PartSpec {
//!     format: PartFormat::Wds,
//!     kind: Kind::object(),
//!     label: Some(LabelType::Int),
//!     columns: Vec::new(),
//! };
//! let mut writer = PartWriter::new(spec, ["texts/a.md", "texts/b.md"])?;
//! writer.push(&PartRow {
//!     index: 1,
//!     label: Some(&Label::Int(7)),
//!     columns: Vec::new(),
//!     value: &Sample::Bytes("# B".into()),
//! })?;
//! // The members `texts/b.md` and `texts/b.cls`.
//! let tar = writer.finish(&[])?;
//! assert_eq!(tar.len(), 6 * 512);
//! # Ok::<(), pushdown_core::Error>(())
//! ```
//!
//! # `wds`
//! A tar in which the members of a sample follow each other: its value, its label, its further columns. They share a base name, which is
//! the sample's name without its extension. Two samples whose bases are equal keep their extensions: `a.jpg` and `a.png` become
//! `a%2Ejpg.jpg` and `a%2Epng.png`. What readers would take for another thing is percent-encoded, such as the dots of a file name, and
//! of a name that is too long the end is replaced by its digest.
//!
//! | value | extension | default decoder of `WebDataset` |
//! |---|---|---|
//! | encoded image | that of its format, such as `jpg` | an image |
//! | other bytes | that of the sample's name, or else `bin` | by the extension |
//! | image, tensor | `npy` | an array |
//! | bf16, quantized | `safetensors` | none: bytes |
//! | label: class, int | `cls` | `int` |
//! | label: float | `json` | `float` |
//! | label: text | `txt` | `str` |
//! | further column | its name in lower case | by the extension |
//!
//! Names of classes are not in the tar.
//!
//! # `parquet`
//! The columns `key` (the sample's name), the value, `label` and the further columns as binary. Hugging Face `datasets` reads their
//! features in the metadata: `Image`, `ClassLabel` with its names, and lists with their length.
//!
//! | value | columns |
//! |---|---|
//! | image that a step encoded | `image`: a struct of `bytes` and `path` |
//! | other bytes | `value`: binary |
//! | image, tensor | `value`: a nested list of fixed length per axis; bf16 as its bits in uint16, with `pushdown.dtype` = `bf16` in the metadata of the field |
//! | quantized | the same of int8, and `scale`: float |
//!
//! Compression is zstd of level 1, except of encoded images. A row group ends after 32 MiB of values or 16,384 rows. Only `key` and `label`
//! have statistics, and there is no page index.
//!
//! # Memory
//! A writer holds its part: [`PartWriter::bytes`] bytes, in a buffer that doubles as it grows. The encoded pages of Parquet's open row group
//! are among these bytes, and are copied when it ends.
//!
//! A Parquet writer needs more while it encodes a batch, which has up to 1 MiB of values and one row: for each element of an array up to 52
//! bytes with f16, 34 with i64 and 28 with the others, as measured. Arrays have at most 16,777,216 elements.

mod base;
mod extension;
mod format;
mod label;
mod notes;
mod parquet;
mod spec;
mod tar;
mod writer;

pub use format::PartFormat;
pub use label::{Label, LabelType};
pub use notes::{NotesRead, PartNote, pack, read_notes, unpack};
pub use spec::PartSpec;
pub use writer::{PartRow, PartWriter};

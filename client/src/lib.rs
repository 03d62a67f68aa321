//! Reads samples through a pushdown gateway, or directly from the store, and runs the rest of the pipeline on this host.
//!
//! ```no_run
//! use futures::TryStreamExt as _;
//! use pushdown_client::reader::{OnError, PushdownReader};
//!
//! # async fn read() -> Result<(), pushdown_client::Error> {
//! let mut reader = PushdownReader::builder()
//!     .endpoint("http://127.0.0.1:9900")
//!     .bucket("photos")
//!     .prefix("train/")
//!     .pipeline("decode | random_resized_crop(224) | flip_h | to_float | normalize(imagenet)")
//!     .seed(7)
//!     .on_error(OnError::Report)
//!     .build()
//!     .await?;
//! while let Some(batch) = reader.try_next().await? {
//!     for (row, error) in batch.errors() {
//!         eprintln!("{}: {error}", row.key);
//!     }
//!     let images = batch.stack()?;
//! }
//! println!("{:?}", reader.stats());
//! # Ok(())
//! # }
//! ```
//!
//! Every sample of an epoch is delivered exactly once, in an order fixed by seed and epoch, even when requests fail:
//! the reader keeps what has arrived, requests what is missing again, and reports a sample that cannot be read by name,
//! at its position. An outage that outlasts the retries is an error. A reader that starts at the batch after the last
//! one resumes the same epoch.
//!
//! A gateway [beside the store](store#two-addresses) is no dependency in [`Mode::Auto`](reader::Mode::Auto): while it does not answer, everything is
//! read plainly from the store.
//!
//! While an endpoint fails and is retried, the library logs it with [`tracing`]: one warning per outage, with the error and
//! the retries left, and one *info* event when the endpoint answers again.
//!
//! In [`Mode::Plain`](reader::Mode::Plain) the same reader reads objects directly and runs the whole pipeline on this host. The result is
//! the same bit for bit.
//!
//! # Chapters
//! - [`reader`]: the samples of an epoch, in batches. Begin here.
//! - [`store`]: one endpoint: lists, single values, tables, and what each split of a pipeline costs.
//! - [`shards`]: samples in tar objects, with an index or without.
//! - [`table`]: rows of Parquet objects as samples.
//! - [`materialize`]: the values of a whole data set, as objects of their own.

mod atomic_write;
mod batch;
mod cpu;
mod engine;
mod epoch;
mod error;
mod error_policy;
pub mod materialize;
mod measure;
mod models;
mod monitor;
mod objects;
mod outage_log;
mod planning;
pub mod reader;
mod retry;
mod sample_name;
pub mod shards;
mod sign;
mod stats;
pub mod store;
#[cfg(feature = "tables")]
pub mod table;
mod transport;
mod units;
mod value_cache;
mod weights;

pub use error::{Error, ErrorKind, Result};

/// What the command line and the Python package of this project need beyond the chapters. It may change in any release.
#[doc(hidden)]
pub mod internal {
    pub use pushdown_s3::{Escaped, is_control};

    pub use crate::{
        atomic_write::{Draft, remove_drafts},
        error_policy::{ErrorPolicy, FailedRows, MaxErrors, SampleFailure},
        models::parse_with_model_folder,
        sample_name::draw_id,
        store::{ConditionalAnswer, ConditionalGet, Signature, Upload},
    };
}

//! Rows of Parquet objects as samples: [`TableReader`] delivers record batches in the order of the epoch.
//!
//! ```no_run
//! use futures::TryStreamExt as _;
//! use pushdown_client::reader::PushdownReader;
//!
//! # async fn read() -> pushdown_client::Result<()> {
//! let mut reader = PushdownReader::builder()
//!     .endpoint("http://127.0.0.1:9900")
//!     .bucket("trips")
//!     .prefix("2026/")
//!     .pipeline("select(columns=[distance, fare], where='distance > 1')")
//!     .seed(7)
//!     .build_table()
//!     .await?;
//! while let Some(batch) = reader.try_next().await? {
//!     println!("{} rows", batch.rows.num_rows());
//! }
//! # Ok(())
//! # }
//! ```

pub use crate::units::rows::{
    Footers, RowGroupSamples, RowId, RowsRead, TableBatch, TableMonitor, TableReader,
};

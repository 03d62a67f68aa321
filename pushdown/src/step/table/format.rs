//! What an object's bytes are: named, or found by their magic bytes.

use std::sync::Arc;

use super::parquet::File;
use crate::{Error, Result, Source, limits::TableLimits, pipeline::choice};

/// Bytes at the end of an object that are read first: most footers fit.
const FIRST_READ: u64 = 64 * 1024;

choice! {
    /// A format that tables are stored in.
    pub enum Format {
        /// Apache Parquet.
        Parquet = "parquet",
    }
}

/// An object whose format and columns are known.
#[derive(Debug, Clone)]
pub(super) enum Stored {
    Parquet(File),
}

impl Stored {
    /// Looks at an object: `format`, if it is named, otherwise what its bytes say.
    pub(super) async fn open(
        format: Option<Format>,
        source: Arc<dyn Source>,
        limits: &TableLimits,
    ) -> Result<Self> {
        let end = source.suffix(FIRST_READ).await?;
        match format {
            None if !end.bytes.ends_with(b"PAR1") => Err(Error::undecodable(
                "the object is no table of a known format: it does not end as Parquet does",
            )),
            _ => File::open(source, end, limits).await.map(Self::Parquet),
        }
    }
}

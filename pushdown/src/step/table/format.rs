//! What an object's bytes are: named, or found by their magic bytes, then by the suffix of the sample's id.

use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::{options::Reading, parquet, stream};
use crate::{Error, ErrorKind, Result, Source, limits::TableLimits, pipeline::choice};

/// Bytes at the end of an object that are read first: most footers fit, and many a small object does whole.
const FIRST_READ: u64 = 64 * 1024;

choice! {
    /// A format that tables are stored in.
    pub enum Format {
        /// Apache Parquet.
        Parquet = "parquet",
        /// Comma-separated values, plain or compressed by gzip or zstd.
        Csv = "csv",
        /// An object in each line, plain or compressed by gzip or zstd.
        Json = "json",
        /// Arrow IPC, a file or a stream.
        Arrow = "arrow",
    }
}

/// An object whose format and columns are known.
#[derive(Debug, Clone)]
pub(super) enum Stored {
    Parquet(parquet::File),
    Stream(stream::File),
}

impl Stored {
    /// Looks at an object: the format that is named, otherwise what its bytes and its id say.
    pub(super) async fn open(
        reading: &Reading,
        source: Arc<dyn Source>,
        sample_id: &[u8],
        limits: &TableLimits,
    ) -> Result<Self> {
        let end = source.suffix(FIRST_READ).await?;
        match reading.format {
            Some(Format::Parquet) => {}
            None if end.bytes.ends_with(b"PAR1") => {}
            _ => {
                let file = stream::File::open(reading, source, end, sample_id, limits).await?;
                return Ok(Self::Stream(file));
            }
        }
        suits(reading, Format::Parquet)?;
        parquet::File::open(source, end, limits).await.map(Self::Parquet)
    }

    /// The columns that are stored.
    pub(super) fn schema(&self) -> &SchemaRef {
        match self {
            Self::Parquet(file) => file.schema(),
            Self::Stream(file) => file.schema(),
        }
    }
}

/// The format that the start of an object, once inflated, and its id tell.
pub(super) fn found(head: &[u8], sample_id: &[u8]) -> Result<Format> {
    if head.starts_with(stream::ARROW_FILE) || head.starts_with(&stream::ARROW_MESSAGE) {
        return Ok(Format::Arrow);
    }
    if head.starts_with(b"FEA1") {
        return Err(Error::undecodable(
            "the object is of Feather's first version, expected the second, which is an Arrow IPC file",
        ));
    }
    let name = name(sample_id);
    let ends = |suffixes: &[&[u8]]| suffixes.iter().any(|suffix| name.ends_with(suffix));
    if ends(&[b".csv", b".tsv"]) {
        Ok(Format::Csv)
    } else if ends(&[b".json", b".jsonl", b".ndjson"]) {
        Ok(Format::Json)
    } else if ends(&[b".parquet"]) {
        Err(Error::undecodable(
            "the object does not end as Parquet files do, with `PAR1`: it is cut off, or no Parquet",
        ))
    } else {
        Err(Error::undecodable(
            "neither the object's bytes nor the end of its name tell the format of a table, expected Parquet, Arrow, CSV \
             or JSON lines: name it with `format=`",
        ))
    }
}

/// Whether the id's suffix is that of values between tabs.
pub(super) fn is_tabbed(sample_id: &[u8]) -> bool {
    name(sample_id).ends_with(b".tsv")
}

/// Refuses arguments that are not for this format.
pub(super) fn suits(reading: &Reading, format: Format) -> Result<()> {
    match reading.misplaced(format) {
        Some(fault) => Err(Error::new(ErrorKind::InvalidPipeline, fault)),
        None => Ok(()),
    }
}

/// The last part of an id in lower case, without what compression adds to it.
fn name(sample_id: &[u8]) -> Vec<u8> {
    let name = sample_id.to_ascii_lowercase();
    let plain = [&b".gz"[..], b".zst", b".zstd"]
        .iter()
        .find_map(|suffix| name.strip_suffix(*suffix));
    plain.map(<[u8]>::to_vec).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magic_bytes_come_before_names() {
        let format = |head: &[u8], name: &str| found(head, name.as_bytes()).ok();
        assert_eq!(format(b"ARROW1\0\0", "a.csv"), Some(Format::Arrow));
        assert_eq!(format(&[0xff, 0xff, 0xff, 0xff, 16], "x"), Some(Format::Arrow));
        assert_eq!(format(b"a,b", "t/A.CSV.gz"), Some(Format::Csv));
        assert_eq!(format(b"a,b", "shard.tar\0part.tsv"), Some(Format::Csv));
        assert_eq!(format(b"{", "a.ndjson.zst"), Some(Format::Json));
        assert_eq!(format(b"a,b", "a.txt"), None);
        let cut = found(b"PAR1", b"t/a.parquet").unwrap_err().to_string();
        assert!(cut.contains("does not end as Parquet files do"), "{cut}");
    }
}

//! The format of an object: named in the step, or detected by its magic bytes, then by the suffix of the sample's id.

use std::sync::Arc;

use arrow_schema::SchemaRef;

use crate::formats::{
    parquet::ParquetFile,
    read_options::ReadOptions,
    stream::{self, StreamFile},
};
use pushdown_core::{Error, ErrorKind, Result, Source, choice, limits::TableLimits};

/// Size of the first read, at the end of the object: most footers fit in it, and so do many small objects.
const FIRST_READ_BYTES: u64 = 64 * 1024;

choice! {
    /// A file format of tables.
    pub enum Format {
        /// Apache Parquet.
        Parquet = "parquet",
        /// Comma-separated values, plain or compressed by gzip or zstd.
        Csv = "csv",
        /// One JSON object per line, plain or compressed by gzip or zstd.
        Json = "json",
        /// Arrow IPC, a file or a stream.
        Arrow = "arrow",
    }
}

/// An opened object: its format and its columns are known.
#[derive(Debug, Clone)]
pub(crate) enum TableFile {
    Parquet(ParquetFile),
    Stream(StreamFile),
}

impl TableFile {
    /// Opens an object in the format that the step names, or else in the one that its bytes and its id indicate.
    pub(crate) async fn open(
        reading: &ReadOptions,
        source: Arc<dyn Source>,
        sample_id: &[u8],
        limits: &TableLimits,
    ) -> Result<Self> {
        let end = source.suffix(FIRST_READ_BYTES).await?;
        match reading.format {
            Some(Format::Parquet) => {}
            None if end.bytes.ends_with(b"PAR1") => {}
            _ => {
                let file = StreamFile::open(reading, source, end, sample_id, limits).await?;
                return Ok(Self::Stream(file));
            }
        }
        check_options(reading, Format::Parquet)?;
        ParquetFile::open(source, end, limits).await.map(Self::Parquet)
    }

    /// The stored columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        match self {
            Self::Parquet(file) => file.schema(),
            Self::Stream(file) => file.schema(),
        }
    }
}

/// Detects the format from the first bytes of an object, decompressed, and from its id.
pub(crate) fn detect_format(head: &[u8], sample_id: &[u8]) -> Result<Format> {
    if head.starts_with(stream::ARROW_FILE) || head.starts_with(&stream::ARROW_MESSAGE) {
        return Ok(Format::Arrow);
    }
    if head.starts_with(b"FEA1") {
        return Err(Error::undecodable(
            "unsupported version of Feather: expected version 2 (an Arrow IPC file), found version 1",
        ));
    }
    let name = uncompressed_name(sample_id);
    let ends = |suffixes: &[&[u8]]| suffixes.iter().any(|suffix| name.ends_with(suffix));
    if ends(&[b".csv", b".tsv"]) {
        Ok(Format::Csv)
    } else if ends(&[b".json", b".jsonl", b".ndjson"]) {
        Ok(Format::Json)
    } else if ends(&[b".parquet"]) {
        Err(Error::undecodable(
            "invalid Parquet: expected `PAR1` at the end of the object (it is truncated, or not a Parquet file)",
        ))
    } else {
        Err(Error::undecodable(
            "unknown table format: expected the bytes or the name suffix of Parquet, Arrow, CSV or JSON lines; name the \
             format with `format=`",
        ))
    }
}

/// Whether the id has the suffix of tab-separated values.
pub(crate) fn is_tab_separated(sample_id: &[u8]) -> bool {
    uncompressed_name(sample_id).ends_with(b".tsv")
}

/// Rejects options that do not apply to `format`.
pub(crate) fn check_options(reading: &ReadOptions, format: Format) -> Result<()> {
    match reading.misplaced_argument(format) {
        Some(fault) => Err(Error::new(ErrorKind::InvalidPipeline, fault)),
        None => Ok(()),
    }
}

/// The id in lower case, without the suffix of a compression.
fn uncompressed_name(sample_id: &[u8]) -> Vec<u8> {
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
    fn magic_bytes_take_precedence_over_names() {
        let format = |head: &[u8], name: &str| detect_format(head, name.as_bytes()).ok();
        assert_eq!(format(b"ARROW1\0\0", "a.csv"), Some(Format::Arrow));
        assert_eq!(format(&[0xff, 0xff, 0xff, 0xff, 16], "x"), Some(Format::Arrow));
        assert_eq!(format(b"a,b", "t/A.CSV.gz"), Some(Format::Csv));
        assert_eq!(format(b"a,b", "shard.tar\0part.tsv"), Some(Format::Csv));
        assert_eq!(format(b"{", "a.ndjson.zst"), Some(Format::Json));
        assert_eq!(format(b"a,b", "a.txt"), None);
        let error = detect_format(b"PAR1", b"t/a.parquet").unwrap_err().to_string();
        assert!(error.contains("expected `PAR1` at the end"), "{error}");
    }
}

//! What a part says about the samples that it lacks: a run that finds the part in its target knows them then.
//!
//! In a tar it is a comment before the first member, in Parquet a value of the footer. A part without them has all of its samples.

use std::io::{Read as _, Write as _};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use parquet::{errors::ParquetError, file::metadata::ParquetMetaDataReader};
use pushdown_core::{Error, Result};
use pushdown_shard::{TarComment, read_tar_comment, tar_comment};
use pushdown_wire::PartError;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::PartFormat;

/// Key of the notes in the footer of Parquet.
pub(crate) const NOTES_KEY: &str = "pushdown.notes";
/// What the comment of a tar begins with.
const COMMENT_PREFIX: &str = "pushdown.notes=";
/// The most bytes of unpacked values.
const MAX_UNPACKED_BYTES: u64 = 64 << 20;
/// Bytes of a tar without members.
const EMPTY_TAR_BYTES: u64 = 1024;

/// A sample that a part lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartNote {
    /// The name of the sample.
    pub name: String,
    /// S3 error code.
    pub code: String,
    /// What failed.
    pub message: String,
}

impl PartNote {
    /// The notes of errors. `names` are those of all samples of the part's request, by row.
    pub fn of_errors(errors: &[PartError], names: &[String]) -> Vec<Self> {
        let note = |error: &PartError| {
            Some(Self {
                name: names.get(error.row as usize)?.clone(),
                code: error.code.clone(),
                message: error.message.clone(),
            })
        };
        errors.iter().filter_map(note).collect()
    }
}

/// What some bytes of a part say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotesRead {
    /// The samples that it lacks.
    Notes(Vec<PartNote>),
    /// It does not tell: a tar without members has no place for notes.
    Unknown,
    /// Reading needs this number of bytes: the first of a tar, the last of a Parquet file.
    Needs(u64),
}

/// Reads the notes of a part of `total_bytes`: of a tar from its first bytes, of a Parquet file from its last ones.
///
/// # Errors
/// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for bytes of something else.
pub fn read_notes(format: PartFormat, bytes: &Bytes, total_bytes: u64) -> Result<NotesRead> {
    let packed = match format {
        PartFormat::Wds if total_bytes == EMPTY_TAR_BYTES => return Ok(NotesRead::Unknown),
        PartFormat::Wds => match read_tar_comment(bytes) {
            TarComment::Needs(more) => return Ok(NotesRead::Needs(more)),
            TarComment::None => None,
            TarComment::Text(text) => text.strip_prefix(COMMENT_PREFIX).map(str::to_owned),
        },
        PartFormat::Parquet => {
            let mut reader = ParquetMetaDataReader::new();
            match reader.try_parse_sized(bytes, total_bytes) {
                Ok(()) => {}
                Err(ParquetError::NeedMoreData(more)) => return Ok(NotesRead::Needs(more as u64)),
                Err(error) => return Err(Error::wire(format!("invalid Parquet file: {error}"))),
            }
            let metadata = reader
                .finish()
                .map_err(|error| Error::wire(format!("invalid Parquet file: {error}")))?;
            let values = metadata.file_metadata().key_value_metadata();
            let mut values = values.into_iter().flatten();
            values
                .find(|value| value.key == NOTES_KEY)
                .and_then(|value| value.value.clone())
        }
    };
    Ok(NotesRead::Notes(
        packed.map_or_else(|| Ok(Vec::new()), |packed| unpack(&packed))?,
    ))
}

/// The comment of a tar with these notes; nothing without any.
pub(crate) fn comment(notes: &[PartNote]) -> Result<Vec<u8>> {
    if notes.is_empty() {
        return Ok(Vec::new());
    }
    let comment = format!("{COMMENT_PREFIX}{}", pack(&notes)?);
    tar_comment(&comment).map_err(|error| {
        Error::too_large(format!(
            "cannot note {} samples that failed: {error}; make parts of fewer samples",
            notes.len()
        ))
    })
}

/// A value as JSON, as gzip in base64: equal values give equal texts.
///
/// # Errors
/// [`Internal`](pushdown_core::ErrorKind::Internal) for a bug.
pub fn pack(value: &impl Serialize) -> Result<String> {
    let packed = || {
        let json = serde_json::to_vec(value)?;
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(&json)?;
        packed.finish()
    };
    let packed = packed().map_err(|error| Error::internal(format!("cannot pack a value: {error}")))?;
    Ok(STANDARD.encode(packed))
}

/// Reads what [`pack`] has written.
///
/// # Errors
/// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for another text, and for more than 64 MiB of JSON.
pub fn unpack<T: DeserializeOwned>(text: &str) -> Result<T> {
    let invalid = |expected: &str| Error::wire(format!("invalid packed value: expected {expected}"));
    let packed = STANDARD.decode(text).map_err(|_| invalid("base64"))?;
    let mut json = Vec::new();
    GzDecoder::new(&*packed)
        .take(MAX_UNPACKED_BYTES + 1)
        .read_to_end(&mut json)
        .map_err(|_| invalid("gzip"))?;
    if json.len() as u64 > MAX_UNPACKED_BYTES {
        return Err(invalid("at most 64 MiB of JSON"));
    }
    serde_json::from_slice(&json).map_err(|error| invalid(&format!("JSON of this value ({error})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_values_come_back() {
        let names = ["a/1.jpg", "a/\u{e9} \n\"2\".jpg", ""]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(unpack::<Vec<String>>(&pack(&names).unwrap()).unwrap(), names);
        assert_eq!(pack(&names).unwrap(), pack(&names).unwrap());
        for (text, expected) in [("?", "expected base64"), ("AAAA", "expected gzip")] {
            let error = unpack::<Vec<String>>(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let number = pack(&7).unwrap();
        assert!(
            unpack::<Vec<String>>(&number)
                .unwrap_err()
                .to_string()
                .contains("expected JSON")
        );
    }
}

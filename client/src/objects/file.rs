//! Saved lists: Arrow IPC files with one record batch.
//!
//! The file is not compressed, so that it is loaded without copies. Schema metadata have the bucket and the digest; the footer has the
//! version of the format and a checksum of all bytes before it. A list with members has a version of its own, with other columns.

mod checksum;
mod footer;
mod members;

use std::{
    collections::HashMap,
    fs,
    io::{BufWriter, IntoInnerError},
    path::Path,
    sync::Arc,
};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, Schema};
use pushdown::wire::RecordBatchReader;

use super::{List, Objects, columns::schema};
use crate::{
    atomic_write::{Draft, write_atomically},
    error::{Error, Result},
};
use checksum::{ChecksumWriter, checksum};
use footer::Footer;

/// Version of the format of a list without members.
const VERSION: &str = "1";
/// Version of the format of a list with members.
const MEMBERS_VERSION: &str = "2";
/// Names of metadata, in the schema and in the footer.
const BUCKET: &str = "pushdown.objects.bucket";
const DIGEST: &str = "pushdown.objects.digest";
const VERSION_NAME: &str = "pushdown.objects.version";
const CHECKSUM: &str = "pushdown.objects.crc32";
/// The start of every Arrow IPC file.
const MAGIC: &[u8; 8] = b"ARROW1\0\0";
/// Number of hex digits of a digest.
const DIGEST_DIGITS: usize = 64;

/// Why a file cannot be loaded.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("expected a file that `Objects::save` wrote, found {0}")]
    Foreign(&'static str),
    #[error(
        "expected format version {VERSION} or {MEMBERS_VERSION}, found `{0}`: load it with the version of pushdown-client that saved it, or list the \
         objects and save them again"
    )]
    OtherVersion(String),
    #[error("the file is damaged: {0}; list the objects and save them again")]
    Damaged(String),
}

impl Objects {
    /// Saves the list to a file: an Arrow IPC file, which other tools read as well. It is first written under a temporary name in the same
    /// folder, so a reader of the file never finds a part of it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) if the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        write_atomically(path, |file| self.write(file)).map_err(|error| {
            Error::config(format!("cannot save the object list {}: {error}", path.display()))
        })
    }

    fn write(&self, file: Draft) -> Result<Draft, ArrowError> {
        let (batch, version) = self.saved_batch()?;
        let metadata = HashMap::from([
            (BUCKET.to_owned(), self.bucket().to_owned()),
            (DIGEST.to_owned(), self.digest().to_owned()),
        ]);
        let schema = Schema::new_with_metadata(batch.schema_ref().fields().clone(), metadata);
        let file = ChecksumWriter::new(BufWriter::new(file));
        let mut writer = FileWriter::try_new(file, &schema)?;
        writer.write(&batch)?;
        let checksum = writer.get_ref().checksum();
        writer.write_metadata(CHECKSUM, checksum);
        writer.write_metadata(VERSION_NAME, version);
        let file = writer.into_inner()?.into_inner();
        Ok(file.into_inner().map_err(IntoInnerError::into_error)?)
    }

    /// What is saved, and the version of its format.
    fn saved_batch(&self) -> Result<(RecordBatch, &'static str), ArrowError> {
        Ok(match &self.0.members {
            Some(members) => (members::to_record_batch(&self.0, members)?, MEMBERS_VERSION),
            None => (RecordBatch::try_new(schema(), self.0.objects())?, VERSION),
        })
    }

    /// Loads a list that [`save`](Self::save) wrote. Its digest is that of the file.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) if the file cannot be read, is no saved list, has another version, or is damaged.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let cannot = |fault: &dyn std::fmt::Display| {
            Error::config(format!("cannot load the object list {}: {fault}", path.display()))
        };
        let file = fs::read(path).map_err(|error| cannot(&error))?;
        decode(file).map_err(|fault| cannot(&fault))
    }
}

/// The list in the bytes of a file. The bytes become the memory of its columns.
fn decode(file: Vec<u8>) -> Result<Objects, Fault> {
    let damaged = |fault: &dyn std::fmt::Display| Fault::Damaged(fault.to_string());
    if !file.starts_with(MAGIC) {
        return Err(Fault::Foreign("another format"));
    }
    let Footer {
        content_bytes,
        expected,
        has_members,
    } = Footer::read(&file)?;
    let found = checksum(&file[..content_bytes]);
    if found != expected {
        return Err(damaged(&format_args!(
            "expected the checksum {expected}, found {found}"
        )));
    }
    let mut messages = Buffer::from(file);
    messages.advance(MAGIC.len());
    // Padding.
    while messages.starts_with(&[0; MAGIC.len()]) {
        messages.advance(MAGIC.len());
    }
    let mut reader = RecordBatchReader::new(u64::MAX).for_stored_object();
    let raw = reader
        .next(&mut messages)
        .map_err(|error| damaged(&error))?
        .ok_or_else(|| damaged(&"it has no record batch"))?;
    if !matches!(reader.next(&mut messages), Ok(None)) || reader.finish().is_err() {
        return Err(damaged(&"expected one record batch"));
    }
    let metadata = raw.schema().metadata().clone();
    let (Some(bucket), Some(digest)) = (metadata.get(BUCKET), metadata.get(DIGEST)) else {
        return Err(damaged(&"its bucket or digest is missing"));
    };
    let is_digit = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    if digest.len() != DIGEST_DIGITS || !digest.bytes().all(is_digit) {
        return Err(damaged(&format_args!(
            "invalid digest: expected {DIGEST_DIGITS} hex digits"
        )));
    }
    let columns: Vec<usize> = (0..raw.schema().fields().len()).collect();
    let batch = raw.read(&columns).map_err(|error| damaged(&error))?;
    let (bucket, digest) = (bucket.as_str().into(), digest.clone().into());
    let list = if has_members {
        members::from_record_batch(bucket, &batch, digest)
    } else {
        List::from_record_batch(bucket, &batch, digest)
    };
    Ok(Objects(Arc::new(list.map_err(|error| damaged(&error))?)))
}

#[cfg(test)]
mod tests;

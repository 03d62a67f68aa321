//! Reads of one shard.

use pushdown::{
    Codec,
    shard::{EntryCursor, LeftOut, Member, ShardError, ShardLimits, ZipDirectory},
};

use super::VersionedObject;
use crate::error::{Error, ErrorKind, Result};

/// Bytes of the first reads of a shard, and of the reads after long contents.
pub(super) const MIN_WINDOW_BYTES: u64 = 64 << 10;
/// The most bytes of a read.
const MAX_WINDOW_BYTES: u64 = 4 << 20;
/// The rest of a content that is long. To read less than this takes about as long as another request.
const LONG_CONTENT_BYTES: u64 = 256 << 10;

/// Reads the headers of a tar of this many bytes. If the contents are short, the reads become longer, as if the shard was streamed.
/// Returns what is left out as well.
pub(super) async fn tar(
    object: &VersionedObject,
    total: u64,
    count: impl Fn(usize),
) -> Result<(Vec<Member>, LeftOut)> {
    let invalid = |error| invalid(object, error);
    let mut cursor = EntryCursor::walk(ShardLimits::default());
    let mut window = MIN_WINDOW_BYTES;
    let mut members = Vec::new();
    while !cursor.is_at_end() {
        let skipped = cursor.skippable();
        cursor.skip(skipped).map_err(invalid)?;
        let start = cursor.position();
        if start >= total {
            break;
        }
        window = if skipped < LONG_CONTENT_BYTES {
            (2 * window).min(MAX_WINDOW_BYTES)
        } else {
            MIN_WINDOW_BYTES
        };
        let bytes = object.range(start..total.min(start + window)).await?;
        cursor.push(bytes.clone());
        let before = members.len();
        while let Some(member) = cursor
            .next_member()
            .map_err(|error| compressed(object, start, &bytes).unwrap_or_else(|| invalid(error)))?
        {
            members.push(member);
        }
        count(members.len() - before);
    }
    let left_out = cursor.left_out().clone();
    cursor.finish(total).map_err(invalid)?;
    Ok((members, left_out))
}

/// The error for a compressed object under the name of a tar, by the bytes of the first read.
fn compressed(object: &VersionedObject, start: u64, bytes: &[u8]) -> Option<Error> {
    let found = match Codec::detect(bytes) {
        _ if start > 0 => return None,
        Ok(Codec::None) => return None,
        Ok(Codec::Gzip) => "the object is compressed by gzip",
        Ok(Codec::Zstd) => "the object is compressed by zstd",
        Err(error) => &error.to_string(),
    };
    let text = format!(
        "cannot index {}: {found}: expected a tar without compression, whose members can be read by ranges; store it so, or read it in shard \
         order",
        object.name()
    );
    Some(Error::new(ErrorKind::Sample, text))
}

/// Reads the directory of a zip of this many bytes.
pub(super) async fn zip(object: &VersionedObject, total: u64, count: impl Fn(usize)) -> Result<Vec<Member>> {
    let invalid = |error| invalid(object, error);
    let mut directory = ZipDirectory::new(total, ShardLimits::default()).map_err(invalid)?;
    while let Some(range) = directory.needs() {
        let bytes = object.range(range).await?;
        directory.push(&bytes).map_err(invalid)?;
    }
    let members = directory.finish().map_err(invalid)?;
    count(members.len());
    Ok(members)
}

fn invalid(object: &VersionedObject, error: ShardError) -> Error {
    let text = format!("cannot index {}: {error}", object.name());
    Error::new(ErrorKind::Sample, text).with_source(error)
}

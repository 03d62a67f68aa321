//! Reads an [S3 Inventory](https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory.html) in place of a listing.

mod csv;
mod data_file;
mod fault;
mod manifest;
mod parquet;
mod rows;

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use futures::{StreamExt as _, stream};
use pushdown::Limits;
use tokio::sync::mpsc;

use self::{
    data_file::ArrivingFile,
    fault::Fault,
    manifest::{DataFile, Manifest},
    rows::InventoryRows,
};
use super::{
    HiddenObjects, Store,
    list::{duplicate, sorted},
    versioned_object::VersionedObject,
};
use crate::{
    error::{Error, Result},
    objects::Objects,
};

/// The largest manifest, in bytes: that of some 200,000 data files.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;
/// The largest data file that is held in memory as a whole, in bytes.
const MAX_HELD_BYTES: u64 = 2 << 30;
/// Bytes of a data file that one request reads.
const PIECE_BYTES: u64 = 8 << 20;
/// Pieces that are requested concurrently.
const CONCURRENT_PIECES: usize = 4;

impl Store {
    /// All objects of a bucket under a prefix that may be samples, from an S3 Inventory in place of a listing: the same list in the same order,
    /// with sizes and ETags, and [hidden objects](HiddenObjects) left out by the same rule. `manifest` is the URL of its `manifest.json`, such
    /// as `s3://inventories/photos/daily/2026-01-01T01-00Z/manifest.json`. Of an inventory of all versions, the current ones are listed. Calls
    /// `progress` from time to time with the number of objects so far.
    ///
    /// An inventory is hours to days old. Objects that were written later are not in the list. Values are computed from what the store has now:
    /// a deleted object is an error of its sample, and a replaced one has its new values. Where the listed ETag is a condition, as in readers
    /// of whole shards, a replaced object is reported.
    ///
    /// The data files may be in another bucket. They are read one after the other, in requests of 8 MiB of which four are in flight, and
    /// checked against the sizes and MD5 sums of the manifest. CSV is read as it arrives. A Parquet file is held in memory, at most 2 GiB, and
    /// so is any file if the endpoint does not support ranges. Without an ETag column ETags are unknown. If the files are not in the order of
    /// keys, the list is in memory twice while it is sorted.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) for an invalid URL, an inventory of another bucket, the format ORC, and an inventory without keys or
    /// sizes; [`Protocol`](crate::ErrorKind::Protocol) for a data file that is not the one of the manifest or is invalid, and for a key that is
    /// listed twice; errors of reading objects. The text names the manifest and the data file.
    pub async fn read_inventory(
        &self,
        manifest: &str,
        bucket: &str,
        prefix: &str,
        hidden: HiddenObjects,
        progress: impl Fn(usize) + Send + Sync,
    ) -> Result<Objects> {
        let cannot = |fault: Fault| fault.into_error(&format!("cannot read the inventory {manifest}"));
        let (manifest_bucket, manifest_key) = manifest
            .strip_prefix("s3://")
            .and_then(|location| location.split_once('/'))
            .filter(|(bucket, key)| !bucket.is_empty() && !key.is_empty())
            .ok_or_else(|| cannot(Fault::Url))?;
        let limits = Limits {
            max_object_bytes: MAX_MANIFEST_BYTES,
            ..Limits::default()
        };
        let text = self.get(manifest_bucket, manifest_key, &limits).await?;
        let inventory = Manifest::parse(&text, bucket).map_err(cannot)?;
        let count = Arc::new(AtomicUsize::new(0));
        let mut rows = InventoryRows::new(prefix, hidden, Arc::clone(&count));
        for file in &inventory.files {
            let progress = || progress(count.load(Relaxed));
            rows = self
                .read_data_file(&inventory, file, rows, &progress)
                .await?
                .map_err(|fault| {
                    let name = format!("s3://{}/{}", inventory.destination_bucket, file.key);
                    fault.into_error(&format!("cannot read the inventory {manifest}: {name}"))
                })?;
            progress();
        }
        let (objects, left_out) = rows.finish(bucket);
        let objects = sorted(objects);
        if let Some(key) = duplicate(&objects) {
            return Err(cannot(Fault::Duplicate(key.to_owned())));
        }
        left_out.warn(bucket, prefix);
        Ok(objects)
    }

    /// Adds the objects of a data file to `rows`. Calls `progress` from time to time.
    ///
    /// # Errors
    /// If the file cannot be read, and a fault of the file.
    #[expect(
        clippy::disallowed_methods,
        reason = "decoding waits for the file to arrive, one file at a time: before a reader with a CPU pool exists"
    )]
    async fn read_data_file(
        &self,
        inventory: &Manifest,
        file: &DataFile,
        rows: InventoryRows,
        progress: &(impl Fn() + Sync),
    ) -> Result<Result<InventoryRows, Fault>> {
        if inventory.format.is_held() && file.size > MAX_HELD_BYTES {
            return Ok(Err(Fault::TooLarge(file.size)));
        }
        let limits = Limits {
            max_object_bytes: MAX_HELD_BYTES,
            ..Limits::default()
        };
        let object = VersionedObject::new(self.clone(), &inventory.destination_bucket, &file.key, &limits);
        let total = object.suffix(PIECE_BYTES).await?.total;
        if total != file.size {
            let fault = Fault::Size {
                expected: file.size,
                found: total,
            };
            return Ok(Err(fault));
        }
        let (sender, arriving) = mpsc::channel(1);
        let (format, file) = (inventory.format, file.clone());
        let decoding = move || {
            let mut rows = rows;
            let decoded = ArrivingFile::new(arriving).decode(format, &file, &mut rows);
            decoded.map(|()| rows)
        };
        let decoding = tokio::task::spawn_blocking(decoding);
        let pieces = ranges(total).map(|range| object.range(range));
        let mut pieces = stream::iter(pieces).buffered(CONCURRENT_PIECES);
        while let Some(piece) = pieces.next().await {
            if sender.send(piece?).await.is_err() {
                break;
            }
            progress();
        }
        drop(sender);
        let failed = |error| Error::internal("reading an inventory failed").with_source(error);
        decoding.await.map_err(failed)
    }
}

/// The ranges of an object of `total` bytes. The last one is the suffix that determines its version.
fn ranges(total: u64) -> impl Iterator<Item = Range<u64>> {
    let first = total % PIECE_BYTES;
    let rest = (0..total / PIECE_BYTES).map(move |number| {
        let start = first + number * PIECE_BYTES;
        start..start + PIECE_BYTES
    });
    std::iter::once(0..first)
        .filter(|range| !range.is_empty())
        .chain(rest)
}

#[cfg(test)]
mod tests;

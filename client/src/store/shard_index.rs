//! Finds the members of shards.

mod walk;

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use futures::{StreamExt as _, stream};
use pushdown::{
    Limits,
    shard::{Compression, LeftOut, Member, ShardFormat, shard_kind},
};
use pushdown_s3::Escaped;

use super::{Store, versioned_object::VersionedObject};
use crate::{
    error::{Error, ErrorKind, Result},
    objects::{MemberRef, Object, Objects, ObjectsBuilder},
    shards::{ShardIndex, check_distinct, warn_of_left_out},
};

/// Shards that are read concurrently.
const CONCURRENT_SHARDS: usize = 8;

/// How far the indexing of shards is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexProgress {
    /// Shards that are complete.
    pub shards: usize,
    /// Members found so far, in all shards.
    pub members: usize,
}

/// The members of a shard, in the order of their offsets.
struct ShardMembers {
    etag: String,
    members: Vec<Member>,
    left_out: LeftOut,
}

/// Counts and reports the progress.
struct Counter<P> {
    shards: AtomicUsize,
    members: AtomicUsize,
    progress: P,
}

impl Store {
    /// Finds all members of these shards: tar objects, and zip objects without compression. Of a tar the headers are read, by ranges that leave
    /// out long contents; of a zip its directory. All reads of a shard are of one version, and eight shards are read at a time. `progress` is
    /// called after each read.
    /// Members that are left out, since they are no regular files or have a name that none can have, are logged as a warning.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a key that is repeated, or that does not end in `.tar` or `.zip`; [`ErrorKind::Sample`] for an object that is
    /// no shard, or was replaced meanwhile; errors of reading the shards. The text names the shard.
    pub async fn index_shards(
        &self,
        shards: &Objects,
        progress: impl Fn(IndexProgress) + Send + Sync,
    ) -> Result<ShardIndex> {
        let bucket = shards.bucket();
        let keys = || (0..shards.len()).map(|index| shards.key(index));
        check_distinct(bucket, keys())?;
        let formats = keys().map(|key| shard_format(bucket, key));
        let formats = formats.collect::<Result<Vec<ShardFormat>>>()?;
        let counter = &Counter {
            shards: AtomicUsize::new(0),
            members: AtomicUsize::new(0),
            progress,
        };
        let reads = keys().zip(formats).map(|(key, format)| async move {
            let object = VersionedObject::new(self.clone(), bucket, key, &Limits::default());
            let found = find_members(&object, format, |members| counter.add(0, members)).await?;
            counter.add(1, 0);
            Ok::<_, Error>((key, found))
        });
        let mut reads = stream::iter(reads).buffered(CONCURRENT_SHARDS);
        let mut builder = ObjectsBuilder::default();
        let (mut all_left_out, mut left_out_by_shard) = (LeftOut::default(), BTreeMap::new());
        while let Some(read) = reads.next().await {
            let (key, found) = read?;
            let ShardMembers {
                etag,
                members,
                left_out,
            } = found;
            if !left_out.is_empty() {
                all_left_out.extend(&format!("{} ", Escaped(key)), &left_out);
                left_out_by_shard.insert(key.to_owned(), left_out.count());
            }
            builder.extend(members.iter().map(|Member { name, range }| Object {
                key,
                bytes: None,
                etag: Some(&etag),
                member: Some(MemberRef { name, range: *range }),
            }));
        }
        warn_of_left_out(bucket, &all_left_out);
        let index = ShardIndex::new(builder.finish(bucket.into()));
        Ok(index.with_left_out(left_out_by_shard))
    }

    /// Finds all members of one shard.
    ///
    /// # Errors
    /// As [`index_shards`](Self::index_shards).
    pub async fn shard_members(&self, bucket: &str, key: &str) -> Result<ShardIndex> {
        self.index_shards(&Objects::from_keys(bucket, [key]), |_| ())
            .await
    }
}

impl<P: Fn(IndexProgress)> Counter<P> {
    /// Adds complete shards and members, and reports the sums.
    fn add(&self, shards: usize, members: usize) {
        (self.progress)(IndexProgress {
            shards: self.shards.fetch_add(shards, Relaxed) + shards,
            members: self.members.fetch_add(members, Relaxed) + members,
        });
    }
}

/// The format of a shard, by its key.
fn shard_format(bucket: &str, key: &str) -> Result<ShardFormat> {
    let found = match shard_kind(key) {
        Some((format, Compression::None)) => return Ok(format),
        Some((_, Compression::Gzip | Compression::Zstd)) => {
            "a compressed tar, whose members cannot be read by ranges: store it without compression, or read it in shard order"
        }
        Some((_, Compression::Bzip2 | Compression::Xz)) => {
            "a tar that is compressed by bzip2 or xz, which is not supported: store it without compression"
        }
        None => "another object",
    };
    Err(Error::config(format!(
        "cannot index s3://{bucket}/{key}: expected a key that ends in .tar or .zip, found {found}"
    )))
}

/// Finds the members of a shard. Calls `count` with the number of members that each read found.
async fn find_members(
    object: &VersionedObject,
    format: ShardFormat,
    count: impl Fn(usize),
) -> Result<ShardMembers> {
    let name = object.name();
    let total = object.suffix(walk::MIN_WINDOW_BYTES).await?.total;
    if total == 0 {
        let text = format!("cannot index {name}: expected a tar or zip, found an empty object");
        return Err(Error::new(ErrorKind::Sample, text));
    }
    let etag = object.etag().ok_or_else(|| {
        Error::protocol(format!(
            "cannot index {name}: the endpoint does not support range requests, by which members are read"
        ))
    })?;
    let etag = etag.to_str().map_err(|error| {
        Error::protocol(format!("cannot index {name}: its ETag is not visible ASCII")).with_source(error)
    })?;
    let (members, left_out) = match format {
        ShardFormat::Tar => walk::tar(object, total, count).await?,
        ShardFormat::Zip => (walk::zip(object, total, count).await?, LeftOut::default()),
    };
    Ok(ShardMembers {
        etag: etag.to_owned(),
        members,
        left_out,
    })
}

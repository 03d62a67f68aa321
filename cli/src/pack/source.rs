//! The files to pack.

use std::{
    fmt,
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
    str::FromStr,
};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use indicatif::ProgressBar;
use pushdown::Limits;
use pushdown_client::store::{HiddenObjects, Store};

use super::shard::Shard;
use crate::{
    connection::Connection,
    errors::{PipelineError, Usage},
    location::Location,
    progress::Listing,
};

/// Objects that are read concurrently.
const CONCURRENT_READS: usize = 8;
/// Bytes of the objects that are read ahead, unless one has more.
const READ_AHEAD_BYTES: u64 = 64 << 20;
/// Bytes of a file that are read at once.
const PIECE_BYTES: usize = 1 << 20;

/// A folder, or a prefix.
#[derive(Debug, Clone)]
pub(super) enum Source {
    Folder(PathBuf),
    Prefix(Location),
}

/// A source that can be read.
pub(super) enum Files {
    Folder(PathBuf),
    Prefix { store: Store, location: Location },
}

/// A file to pack.
#[derive(Debug)]
pub(super) struct SourceFile {
    /// Its path in the folder, or its key after the prefix.
    pub(super) name: String,
    pub(super) bytes: u64,
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("s3://") {
            return Ok(Self::Prefix(text.parse()?));
        }
        Ok(Self::Folder(text.into()))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "{}", folder.display()),
            Self::Prefix(location) => write!(f, "{location}"),
        }
    }
}

impl Source {
    pub(super) async fn open(&self, connection: &Connection) -> anyhow::Result<Files> {
        let location = match self {
            Self::Folder(folder) => return Ok(Files::Folder(folder.clone())),
            Self::Prefix(location) => location.clone(),
        };
        if !location.key.is_empty() && !location.key.ends_with('/') {
            let text = format!("found the prefix {location}, expected one that ends in `/`");
            return Err(Usage(text).into());
        }
        let store = connection.store().build().await;
        let store = store.map_err(|error| PipelineError::wrap("", error))?;
        Ok(Files::Prefix { store, location })
    }
}

impl Files {
    /// All files, in any order.
    pub(super) async fn list(&self) -> anyhow::Result<Vec<SourceFile>> {
        match self {
            Self::Folder(folder) => list_folder(folder),
            Self::Prefix { store, location } => list_prefix(store, location).await,
        }
    }

    /// Adds files to a shard, in this order.
    pub(super) async fn append(
        &self,
        files: &[SourceFile],
        shard: &mut Shard,
        bar: &ProgressBar,
    ) -> anyhow::Result<()> {
        let (store, location) = match self {
            Self::Folder(folder) => {
                let mut piece = vec![0; PIECE_BYTES];
                for file in files {
                    append_file(folder, file, shard, &mut piece).await?;
                    bar.inc(1);
                }
                return Ok(());
            }
            Self::Prefix { store, location } => (store, location),
        };
        let mut rest = files;
        while !rest.is_empty() {
            let (next, later) = rest.split_at(read_ahead(rest));
            rest = later;
            let reads = next.iter().map(|file| read_object(store, location, file));
            let contents: Vec<Bytes> = stream::iter(reads)
                .buffered(CONCURRENT_READS)
                .try_collect()
                .await?;
            for (file, content) in next.iter().zip(contents) {
                shard.start(file).await?;
                shard.write(&content).await?;
                bar.inc(1);
            }
        }
        Ok(())
    }
}

/// The files in a folder and in its subfolders. Links to files are followed.
fn list_folder(folder: &Path) -> anyhow::Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    let mut subfolders = vec![PathBuf::new()];
    while let Some(subfolder) = subfolders.pop() {
        let path = folder.join(&subfolder);
        let cannot_read = || format!("cannot read {}", path.display());
        for entry in fs::read_dir(&path).with_context(cannot_read)? {
            let entry = entry.with_context(cannot_read)?;
            let name = subfolder.join(entry.file_name());
            if entry.file_type().with_context(cannot_read)?.is_dir() {
                subfolders.push(name);
                continue;
            }
            let path = entry.path();
            let metadata = fs::metadata(&path).with_context(|| format!("cannot read {}", path.display()))?;
            ensure!(
                metadata.is_file(),
                "expected files and folders, found {}",
                path.display()
            );
            let name = name
                .to_str()
                .with_context(|| format!("expected a name in UTF-8, found {}", path.display()))?;
            files.push(SourceFile {
                name: name.to_owned(),
                bytes: metadata.len(),
            });
        }
    }
    Ok(files)
}

/// The objects under a prefix.
async fn list_prefix(store: &Store, location: &Location) -> anyhow::Result<Vec<SourceFile>> {
    let Location { bucket, key } = location;
    let listing = Listing::new(location);
    let listed = store.list_objects_with(bucket, key, HiddenObjects::LeftOut, |objects| {
        listing.update(objects);
    });
    let listed = listed.await.map_err(|error| PipelineError::wrap("", error))?;
    let file = |object: pushdown_client::store::Object<'_>| {
        let name = object.key.strip_prefix(&**key).unwrap_or(object.key);
        let bytes = object
            .bytes
            .with_context(|| format!("the listing has no size of s3://{bucket}/{}", object.key))?;
        Ok::<_, anyhow::Error>(SourceFile {
            name: name.to_owned(),
            bytes,
        })
    };
    listed.iter().map(file).collect()
}

/// The number of files that are read ahead, at least one.
fn read_ahead(files: &[SourceFile]) -> usize {
    let mut bytes = 0_u64;
    let next = files.iter().take_while(|file| {
        bytes = bytes.saturating_add(file.bytes);
        bytes <= READ_AHEAD_BYTES
    });
    next.count().max(1)
}

async fn append_file(
    folder: &Path,
    file: &SourceFile,
    shard: &mut Shard,
    piece: &mut [u8],
) -> anyhow::Result<()> {
    shard.start(file).await?;
    let path = folder.join(&file.name);
    let cannot_read = || format!("cannot read {}", path.display());
    let mut reader = File::open(&path).with_context(cannot_read)?;
    let mut left = file.bytes;
    loop {
        let read = reader.read(piece).with_context(cannot_read)?;
        if read == 0 && left == 0 {
            return Ok(());
        }
        let rest = left.checked_sub(read as u64).filter(|_| read > 0);
        left = rest.with_context(|| format!("{} changed while it was packed", path.display()))?;
        shard.write(&piece[..read]).await?;
    }
}

async fn read_object(store: &Store, location: &Location, file: &SourceFile) -> anyhow::Result<Bytes> {
    let key = format!("{}{}", location.key, file.name);
    let content = store.get(&location.bucket, &key, &Limits::default()).await?;
    ensure!(
        content.len() as u64 == file.bytes,
        "s3://{}/{key} changed while it was packed",
        location.bucket
    );
    Ok(content)
}

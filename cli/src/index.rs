//! `pushdown index`: finds the members of shards, and saves them as a list.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use clap::Args;
use indicatif::{HumanBytes, HumanCount, ProgressStyle};
use pushdown::shard::shard_kind;
use pushdown_client::{
    shards::ShardIndex,
    store::{HiddenObjects, Objects, Store},
};
use serde::Serialize;
use tokio::time::Instant;

use crate::{
    Exit,
    connection::Connection,
    errors::{PipelineError, Usage},
    location::{Location, expand},
    print::{Count, Format},
    progress::{self, Listing},
};

/// Find the members of tar and zip shards, and save them as a list
///
/// Reads headers and directories by ranges, not the contents. The list names the version of each shard: index shards again after they were
/// replaced.
#[derive(Debug, Args)]
pub(crate) struct Index {
    /// The shards, such as `s3://b/train-{000..120}.tar`; a key that ends in `/` means all shards under it
    #[arg(value_name = "s3://BUCKET/KEY", required = true)]
    shards: Vec<Location>,
    /// Parquet file to write
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    connection: Connection,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Report {
    shards: usize,
    members: usize,
    /// Members that are left out.
    left_out: u64,
    /// Bytes of all contents.
    bytes: u64,
    seconds: f64,
}

impl Index {
    pub(crate) async fn run(self) -> anyhow::Result<Exit> {
        let start = Instant::now();
        self.check_output()?;
        let (bucket, keys) = expand(&self.shards)?;
        let wrap = |error| PipelineError::wrap("", error);
        let store = self.connection.store().build().await.map_err(wrap)?;
        let shards = list(&store, bucket, keys).await?;
        let bar = progress::bar(shards.len() as u64).with_style(style());
        let index = store.index_shards(&shards, |progress| {
            bar.set_position(progress.shards as u64);
            bar.set_message(HumanCount(progress.members as u64).to_string());
        });
        let index = index.await;
        bar.finish_and_clear();
        let index = index.map_err(wrap)?;
        index.save(&self.output).map_err(wrap)?;
        let seconds = start.elapsed().as_secs_f64();
        self.format.report(&Report::new(shards.len(), &index, seconds))?;
        Ok(Exit::Success)
    }

    /// Refuses a file in a folder that does not exist, before the shards are read.
    fn check_output(&self) -> Result<(), Usage> {
        let folder = self.output.parent().unwrap_or_else(|| Path::new(""));
        if folder.as_os_str().is_empty() || folder.is_dir() {
            return Ok(());
        }
        Err(Usage(format!(
            "cannot write {}: there is no folder {}",
            self.output.display(),
            folder.display()
        )))
    }
}

/// The shards with these keys, and all those under prefixes that end in `/`.
async fn list(store: &Store, bucket: String, keys: Vec<String>) -> anyhow::Result<Objects> {
    let mut shards = Vec::with_capacity(keys.len());
    for key in keys {
        if !key.is_empty() && !key.ends_with('/') {
            shards.push(key);
            continue;
        }
        let prefix = Location {
            bucket: bucket.clone(),
            key,
        };
        let listing = Listing::new(&prefix);
        let listed = store.list_objects_with(&bucket, &prefix.key, HiddenObjects::LeftOut, |objects| {
            listing.update(objects);
        });
        let listed = listed.await.map_err(|error| PipelineError::wrap("", error))?;
        let found = listed.iter().map(|object| object.key);
        let before = shards.len();
        shards.extend(found.filter(|key| shard_kind(key).is_some()).map(str::to_owned));
        anyhow::ensure!(shards.len() > before, "no shards found under {prefix}");
    }
    Ok(Objects::from_keys(bucket, shards))
}

impl Report {
    fn new(shards: usize, index: &ShardIndex, seconds: f64) -> Self {
        let sizes = index.members().iter().filter_map(|member| member.bytes);
        Self {
            shards,
            members: index.len(),
            left_out: index.left_out(),
            bytes: sizes.fold(0, u64::saturating_add),
            seconds,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} in {}, contents of {}, in {:.2} s",
            Count(self.members, "member"),
            Count(self.shards, "shard"),
            HumanBytes(self.bytes),
            self.seconds
        )?;
        if self.left_out > 0 {
            let members = usize::try_from(self.left_out).unwrap_or(usize::MAX);
            writeln!(f, "{} left out", Count(members, "member"))?;
        }
        Ok(())
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:30} {pos}/{len} shards  {msg} members  {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

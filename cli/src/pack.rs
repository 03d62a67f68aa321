//! `pushdown pack`: writes files as tar shards.

mod plan;
mod shard;
mod source;
mod target;

use std::{fmt, num::NonZeroUsize};

use clap::Args;
use indicatif::{HumanBytes, ProgressStyle};
use serde::Serialize;
use tokio::time::Instant;

use crate::{
    Exit,
    connection::Connection,
    print::{Count, Format},
    progress,
};
use plan::{ShardLimits, ShardPlan};
use shard::Shard;
use source::Source;
use target::Target;

/// Write files as tar shards
///
/// The files are sorted by name. Those whose names agree up to the first dot are one sample, and stay together. Equal files give equal
/// shards.
#[derive(Debug, Args)]
pub(crate) struct Pack {
    /// The files: a folder with its subfolders, or the objects under a prefix
    #[arg(value_name = "DIR | s3://BUCKET/PREFIX")]
    source: Source,
    /// The shards: paths or `s3://BUCKET/KEY`, with `%06d` for numbers of six digits
    #[arg(long, short, value_name = "NAME-%06d.tar")]
    output: Target,
    /// The most bytes of a shard, unless one sample has more
    #[arg(long, value_name = "N", default_value_t = 256 << 20)]
    shard_bytes: u64,
    /// The most samples of a shard
    #[arg(long, value_name = "N")]
    shard_samples: Option<NonZeroUsize>,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    connection: Connection,
}

/// What was written.
#[derive(Debug, Default, Serialize)]
struct Report {
    shards: usize,
    samples: usize,
    files: usize,
    /// Bytes of all shards.
    bytes: u64,
    seconds: f64,
}

impl Pack {
    pub(crate) async fn run(self) -> anyhow::Result<Exit> {
        let start = Instant::now();
        let source = self.source.open(&self.connection).await?;
        let target = self.output.open(&self.connection).await?;
        target.check_is_new().await?;
        let mut files = source.list().await?;
        anyhow::ensure!(!files.is_empty(), "no files found in {}", self.source);
        plan::sort(&mut files);
        let limits = ShardLimits {
            bytes: self.shard_bytes,
            samples: self.shard_samples.map_or(usize::MAX, NonZeroUsize::get),
        };
        let bar = progress::bar(files.len() as u64).with_style(style());
        let mut report = Report::default();
        for (number, plan) in plan::shards(&files, limits).into_iter().enumerate() {
            let ShardPlan {
                files: range,
                samples,
            } = plan;
            let mut shard = Shard::new(target.create(number)?);
            if let Err(error) = source.append(&files[range.clone()], &mut shard, &bar).await {
                shard.discard().await;
                return Err(error);
            }
            report.bytes += shard.finish().await?;
            report.shards += 1;
            report.samples += samples;
            report.files += range.len();
        }
        bar.finish_and_clear();
        report.seconds = start.elapsed().as_secs_f64();
        self.format.report(&report)?;
        Ok(Exit::Success)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} of {} in {} of {}, in {:.2} s",
            Count(self.samples, "sample"),
            Count(self.files, "file"),
            Count(self.shards, "shard"),
            HumanBytes(self.bytes),
            self.seconds
        )
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:30} {pos}/{len} files  {per_sec}  {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

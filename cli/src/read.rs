//! `pushdown read`: reads all objects under a prefix, or members of shards.

mod indexed;
mod reader;

use std::{
    collections::BTreeMap,
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use pushdown_client::reader::{Compression, Mode, OnError, PushdownReader, Rank, Split};
use tokio::time::Instant;

use crate::{
    Exit,
    batch_waits::BatchWaits,
    connection::{Connection, Randomness},
    errors::{PipelineError, Usage},
    location::Location,
    print::Format,
    progress::{self, Listing},
    report::{EpochFigures, Report, cpu_time},
    terminal::write_line,
};
use indexed::{DataSet, Indexed};
use reader::SampleReader;

/// Read all objects under a prefix, and report the throughput
///
/// Samples that cannot be read are listed on stderr; all others are still read.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Read {
    /// The objects; with --index or --order shards the shards, as in `s3://photos/train-{000000..000999}.tar`
    #[arg(value_name = "s3://BUCKET/PREFIX")]
    prefix: Location,
    /// Pipeline for every object; see `pushdown steps`
    #[arg(long, short)]
    pipeline: String,
    /// Baseline: read the objects themselves and run the whole pipeline on this host
    #[arg(long)]
    plain: bool,
    /// Let the planner choose, per object, how many steps run at the gateway, from measured CPU and link costs
    #[arg(long, conflicts_with_all = ["plain", "split"])]
    auto: bool,
    /// With --auto: the most bytes of a value, as a multiple of its object's bytes
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    max_expand: f64,
    /// Stage at which the gateway stops and this host continues: full, smallest or a number of steps
    #[arg(long, default_value_t = Split::Smallest)]
    split: Split,
    /// Folder of the value cache: values that are the same in every epoch are stored in it and not requested again
    #[arg(long, value_name = "DIR")]
    value_cache: Option<PathBuf>,
    /// Compress values in transit; this helps with ReLU features, not with photos
    #[arg(long)]
    compress: bool,
    /// Read hidden objects as well: files of desktops, and empty objects that stand for folders
    #[arg(long)]
    include_hidden: bool,
    /// Samples in a batch
    #[arg(long, value_name = "N", default_value_t = 64)]
    batch_size: usize,
    #[command(flatten)]
    randomness: Randomness,
    /// Part of the data set to read, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    rank: usize,
    /// Number of parts of the data set
    #[arg(long, value_name = "N", default_value_t = 1)]
    world: usize,
    /// Read at most N samples: the first ones of the epoch
    #[arg(long, value_name = "N")]
    limit: Option<NonZeroUsize>,
    /// Read this many epochs; with --auto, the planner minimises the time of all of them
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::MIN, conflicts_with = "limit")]
    epochs: NonZeroU32,
    /// Wait this many milliseconds after each batch, like an accelerator that trains on it
    #[arg(long, value_name = "MS", default_value_t = 0)]
    step_ms: u64,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    indexed: Indexed,
    #[command(flatten)]
    connection: Connection,
}

/// Figures of the batches of all epochs.
#[derive(Default)]
struct ReadFigures {
    waits: BatchWaits,
    /// Samples by the stage at which they arrived.
    stages: BTreeMap<u8, u64>,
    last_epoch: EpochFigures,
}

impl Read {
    pub(crate) async fn run(self) -> anyhow::Result<Exit> {
        let begin = Instant::now();
        let data_set = self.indexed.data_set(&self.prefix)?;
        if self.auto && matches!(data_set, DataSet::Shards { .. }) {
            let text = "--auto requires --index with shards: their members are computed at a gateway only with an index";
            return Err(Usage(text.to_owned()).into());
        }
        let mut reader = self
            .reader(data_set)
            .await
            .map_err(|error| PipelineError::wrap(&self.pipeline, error))?;
        let bar = match reader.samples() {
            Some(0) => anyhow::bail!("no objects found under {}", self.prefix),
            Some(samples) => progress::bar(samples as u64 * u64::from(self.epochs.get())).with_style(style()),
            None => progress::counter().with_style(counter_style()),
        };
        let (start, cpu) = (Instant::now(), cpu_time());
        let setup_time = begin.elapsed();
        let mut figures = ReadFigures::default();
        let mut epochs = Vec::new();
        for epoch in 0..self.epochs.get() {
            let (start, cpu) = (Instant::now(), cpu_time());
            if epoch > 0 {
                reader.set_epoch(self.randomness.epoch.saturating_add(epoch));
            }
            figures.last_epoch.stages.clear();
            let before = reader.stats();
            self.epoch(&mut reader, &bar, &mut figures).await?;
            epochs.push(start.elapsed().as_secs_f64());
            let after = reader.stats();
            figures.last_epoch.cropped_samples = after.cropped_samples - before.cropped_samples;
            figures.last_epoch.cache_hits = after.cache_hits - before.cache_hits;
            figures.last_epoch.gateway_cache_hits = after.gateway_cache_hits - before.gateway_cache_hits;
            figures.last_epoch.cpu_seconds = cpu_time().saturating_sub(cpu).as_secs_f64();
        }
        let (elapsed, cpu) = (start.elapsed(), cpu_time().saturating_sub(cpu));
        bar.finish_and_clear();
        let mut report = Report::new(&reader.stats(), reader.mode(), self.split, elapsed, cpu);
        report.addresses = reader.addresses();
        report.epoch_seconds = epochs;
        report.stages = figures.stages;
        report.last_epoch = figures.last_epoch;
        report.start_seconds = setup_time.as_secs_f64();
        report.batches = figures.waits.percentiles();
        report.first_batch_seconds = figures
            .waits
            .first()
            .map(|first| (setup_time + first).as_secs_f64());
        if let Some(plan) = reader.plan() {
            report.plan = Some(plan.to_string());
            report.planned_samples_per_second = Some(plan.samples_per_second());
        }
        self.format.report(&report)?;
        Ok(if report.errors == 0 {
            Exit::Success
        } else {
            Exit::Failure
        })
    }

    /// Reads an epoch, up to the limit.
    async fn epoch(
        &self,
        reader: &mut SampleReader,
        bar: &ProgressBar,
        figures: &mut ReadFigures,
    ) -> anyhow::Result<()> {
        loop {
            let start = Instant::now();
            let Some(batch) = reader.next().await? else {
                return Ok(());
            };
            figures.waits.add(start.elapsed());
            if self.step_ms > 0 {
                tokio::time::sleep(Duration::from_millis(self.step_ms)).await;
            }
            for (row, error) in batch.errors() {
                bar.suspend(|| write_line(format_args!("{}: {error}", row.name())))?;
            }
            for row in batch.rows().iter().filter(|row| row.value.is_ok()) {
                *figures.stages.entry(row.stage).or_default() += 1;
                *figures.last_epoch.stages.entry(row.stage).or_default() += 1;
            }
            bar.inc(batch.len() as u64);
            bar.set_message(indicatif::HumanBytes(reader.stats().wire_bytes_down).to_string());
        }
    }

    const fn mode(&self) -> Mode {
        match (self.auto, self.plain) {
            (true, _) => Mode::Auto,
            (_, true) => Mode::Plain,
            _ => Mode::Pushdown,
        }
    }

    /// A reader of these members, of whole shards, or of the objects under the prefix.
    async fn reader(&self, data_set: DataSet) -> Result<SampleReader, pushdown_client::Error> {
        let listing = Listing::new(&self.prefix);
        let mut builder = PushdownReader::builder()
            .store(self.connection.store())
            .bucket(&self.prefix.bucket)
            .prefix(&self.prefix.key)
            .include_hidden(self.include_hidden)
            .pipeline(&self.pipeline)
            .mode(self.mode())
            .split(self.split)
            .max_expand(self.max_expand)
            .compression(if self.compress {
                Compression::Lz4
            } else {
                Compression::None
            })
            .on_error(OnError::Report)
            .batch_size(self.batch_size)
            .order(self.indexed.order())
            .on_listing(move |objects| listing.update(objects))
            .epoch(self.randomness.epoch)
            .epochs(self.epochs)
            .rank(Rank {
                index: self.rank,
                world: self.world,
            });
        if let Some(limit) = self.limit {
            builder = builder.limit(limit.get());
        }
        if let Some(seed) = self.randomness.seed {
            builder = builder.seed(seed);
        }
        if let Some(folder) = &self.connection.models {
            builder = builder.models(folder);
        }
        if let Some(folder) = &self.value_cache {
            builder = builder.value_cache(folder);
        }
        Ok(match data_set {
            DataSet::Prefix => SampleReader::Objects(Box::new(builder.build().await?)),
            DataSet::Members(members) => {
                SampleReader::Objects(Box::new(builder.objects(members).build().await?))
            }
            DataSet::Shards { keys, columns } => {
                builder = builder.columns(columns);
                if let Some(keys) = keys {
                    builder = builder.keys(keys);
                }
                SampleReader::Shards(Box::new(builder.build_shards().await?))
            }
        })
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:30} {pos}/{len} samples  {per_sec}  {msg} received  {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn counter_style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {pos} samples  {per_sec}  {msg} received")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
}

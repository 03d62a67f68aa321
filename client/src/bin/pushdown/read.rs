//! `pushdown read`: all objects under a prefix.

use std::{
    collections::BTreeMap,
    io::{self, Write as _},
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use futures::TryStreamExt as _;
use indicatif::{ProgressBar, ProgressStyle};
use pushdown_client::{Compression, Mode, OnError, PushdownReader, Split};
use tokio::time::Instant;

use crate::{
    connection::{Connection, Randomness},
    fault::PipelineFault,
    location::Location,
    print::Format,
    progress::{self, Listing},
    report::{Epoch, Report, cpu_time},
    waits::Waits,
};

/// Read all objects under a prefix, and tell how fast that was
///
/// A sample that cannot be read is named on stderr; the others are read all the same.
#[derive(Debug, Args)]
pub(crate) struct Read {
    /// The objects
    #[arg(value_name = "s3://BUCKET/PREFIX")]
    prefix: Location,
    /// What to make of every object; see `pushdown steps`
    #[arg(long, short)]
    pipeline: String,
    /// Read the objects themselves and run the whole pipeline here: the baseline
    #[arg(long)]
    plain: bool,
    /// Read each object as a plan has it, which follows what samples cost on either side and on the way
    #[arg(long, conflicts_with_all = ["plain", "split"])]
    auto: bool,
    /// With --auto: a value has at most so many times the bytes of its object
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    max_expand: f64,
    /// Where the gateway stops and this host goes on: full, smallest or a number of steps
    #[arg(long, default_value_t = Split::Smallest)]
    split: Split,
    /// Folder for values that are the same in every epoch: those in it are not asked for again
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Compress values on their way: features behind a rectifier shrink, photos do not
    #[arg(long)]
    compress: bool,
    /// Samples in a batch
    #[arg(long, value_name = "N", default_value_t = 64)]
    batch_size: usize,
    #[command(flatten)]
    randomness: Randomness,
    /// Which part of the data set to read, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    rank: usize,
    /// Parts of the data set
    #[arg(long, value_name = "N", default_value_t = 1)]
    world: usize,
    /// Read no more than N samples: the first ones of the epoch
    #[arg(long, value_name = "N")]
    limit: Option<NonZeroUsize>,
    /// Read so many epochs, one after the other
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::MIN, conflicts_with = "limit")]
    epochs: NonZeroU32,
    /// Wait so many milliseconds behind each batch, as for an accelerator that trains on it
    #[arg(long, value_name = "MS", default_value_t = 0)]
    step_ms: u64,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    connection: Connection,
}

/// What the batches of all epochs tell.
#[derive(Default)]
struct Seen {
    waits: Waits,
    /// Samples by the stage at which they came.
    stages: BTreeMap<u8, u64>,
    last_epoch: Epoch,
}

impl Read {
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        let begin = Instant::now();
        let mut reader = self
            .reader()
            .await
            .map_err(|error| PipelineFault::of(&self.pipeline, error))?;
        let wanted = reader.len();
        if wanted == 0 {
            anyhow::bail!("there is nothing to read under {}", self.prefix);
        }
        let bar = progress::bar(wanted as u64 * u64::from(self.epochs.get())).with_style(style());
        let (start, cpu) = (Instant::now(), cpu_time());
        let starting = begin.elapsed();
        let mut seen = Seen::default();
        let mut epochs = Vec::new();
        for epoch in 0..self.epochs.get() {
            let (start, cpu) = (Instant::now(), cpu_time());
            if epoch > 0 {
                reader.set_epoch(self.randomness.epoch.saturating_add(epoch));
            }
            seen.last_epoch.stages.clear();
            self.epoch(&mut reader, &bar, &mut seen).await?;
            epochs.push(start.elapsed().as_secs_f64());
            seen.last_epoch.cpu_seconds = cpu_time().saturating_sub(cpu).as_secs_f64();
        }
        let (elapsed, cpu) = (start.elapsed(), cpu_time().saturating_sub(cpu));
        bar.finish_and_clear();
        let mut report = Report::new(&reader.stats(), reader.mode(), self.split, elapsed, cpu);
        report.epoch_seconds = epochs;
        report.stages = seen.stages;
        report.last_epoch = seen.last_epoch;
        report.start_seconds = starting.as_secs_f64();
        report.batches = seen.waits.percentiles();
        report.first_batch_seconds = seen.waits.first().map(|first| (starting + first).as_secs_f64());
        if let Some(plan) = reader.plan() {
            report.plan = Some(plan.to_string());
            report.planned_samples_per_second = Some(plan.samples_per_second());
        }
        self.format.report(&report)?;
        Ok(if report.errors == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }

    /// Reads an epoch, up to the limit.
    async fn epoch(
        &self,
        reader: &mut PushdownReader,
        bar: &ProgressBar,
        seen: &mut Seen,
    ) -> anyhow::Result<()> {
        loop {
            let start = Instant::now();
            let Some(batch) = reader.try_next().await? else {
                return Ok(());
            };
            seen.waits.add(start.elapsed());
            if self.step_ms > 0 {
                tokio::time::sleep(Duration::from_millis(self.step_ms)).await;
            }
            for (row, error) in batch.errors() {
                bar.suspend(|| writeln!(io::stderr(), "{}: {error}", row.key))?;
            }
            for row in batch.rows().iter().filter(|row| row.value.is_ok()) {
                *seen.stages.entry(row.stage).or_default() += 1;
                *seen.last_epoch.stages.entry(row.stage).or_default() += 1;
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

    async fn reader(&self) -> Result<PushdownReader, pushdown_client::Error> {
        let listing = Listing::of(&self.prefix);
        let mut builder = PushdownReader::builder()
            .store(self.connection.store())
            .bucket(&self.prefix.bucket)
            .prefix(&self.prefix.key)
            .pipeline(&self.pipeline)
            .mode(self.mode())
            .split(self.split)
            .max_expand(self.max_expand)
            .compression(if self.compress {
                Compression::Lz4
            } else {
                Compression::None
            })
            .on_error(OnError::SkipAndReport)
            .batch_size(self.batch_size)
            .on_listing(move |objects| listing.listed(objects))
            .epoch(self.randomness.epoch)
            .shard((self.rank, self.world));
        if let Some(limit) = self.limit {
            builder = builder.limit(limit.get());
        }
        if let Some(seed) = self.randomness.seed {
            builder = builder.seed(seed);
        }
        if let Some(folder) = &self.connection.models {
            builder = builder.models(folder);
        }
        if let Some(folder) = &self.keep {
            builder = builder.keep(folder);
        }
        builder.build().await
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:30} {pos}/{len} samples  {per_sec}  {msg} received  {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

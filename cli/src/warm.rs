//! `pushdown warm`: lets a gateway compute values and keep them in its result cache.

use std::{fmt, num::NonZeroU32, time::Duration};

use clap::Args;
use futures::TryStreamExt as _;
use indicatif::{HumanCount, HumanDuration, ProgressStyle};
use pushdown::wire::Pin;
use pushdown_client::reader::{Mode, OnError, PushdownReader, PushdownReaderBuilder, Split, Stats, WarmUp};
use serde::Serialize;
use tokio::time::Instant;

use crate::{
    Exit,
    connection::{Connection, Randomness},
    data_set::DataSet,
    errors::PipelineError,
    print::Format,
    progress,
    terminal::write_line,
};

/// Samples of a request.
const BATCH_SAMPLES: usize = 256;

/// Compute values at the gateway, and keep them in its result cache
///
/// Nothing is delivered: only names and signatures are sent. The values are those before the first random step, which is where readers of
/// the pipeline begin. Run again, it computes what is missing, and renews --keep.
#[derive(Debug, Args)]
pub(crate) struct Warm {
    #[command(flatten)]
    data_set: DataSet,
    /// Pipeline for every object; see `pushdown steps`
    #[arg(long, short)]
    pipeline: String,
    /// Stage of the values: the number of steps that are applied [default: all before the first random step]
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u8).range(1..))]
    stage: Option<u8>,
    /// Keep the values at least this long, up to 30 days, such as 24h or 7d; a part of the cache is for that
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    keep: Option<NonZeroU32>,
    #[command(flatten)]
    randomness: Randomness,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    connection: Connection,
}

/// What was cached.
#[derive(Debug, Serialize)]
struct Report {
    samples: u64,
    /// Samples whose values the cache has.
    cached: u64,
    /// Those that it had before.
    found: u64,
    /// Samples whose values it could not keep.
    not_cached: u64,
    errors: u64,
    /// Part of the samples that is cached, 0 to 1.
    cached_ratio: f64,
    wire_bytes_up: u64,
    wire_bytes_down: u64,
    seconds: f64,
}

impl Report {
    fn new(stats: &Stats, elapsed: Duration) -> Self {
        let samples = stats.warmed + stats.not_warmed + stats.errors;
        Self {
            samples,
            cached: stats.warmed,
            found: stats.gateway_cache_hits,
            not_cached: stats.not_warmed,
            errors: stats.errors,
            cached_ratio: ratio(stats.warmed, samples),
            wire_bytes_up: stats.wire_bytes_up,
            wire_bytes_down: stats.wire_bytes_down,
            seconds: elapsed.as_secs_f64(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:.2} cached: {} of {} samples, {} of them before; {} not cached, {} errors; {}",
            self.cached_ratio,
            HumanCount(self.cached),
            HumanCount(self.samples),
            HumanCount(self.found),
            HumanCount(self.not_cached),
            HumanCount(self.errors),
            HumanDuration(Duration::from_secs_f64(self.seconds)),
        )?;
        if self.not_cached > 0 {
            writeln!(
                f,
                "the result cache has no room for the others, or never keeps them: see --cache-disk, --cache-memory and --cache-pin-ratio of \
                 the gateway"
            )?;
        }
        Ok(())
    }
}

impl Warm {
    pub(crate) async fn run(self) -> anyhow::Result<Exit> {
        let wrap = |error| PipelineError::wrap(&self.pipeline, error);
        let start = Instant::now();
        let mut reader = Box::pin(self.reader().await?.build()).await.map_err(wrap)?;
        anyhow::ensure!(
            !reader.is_empty(),
            "no objects found under {}",
            self.data_set.prefix
        );
        let bar = progress::bar(reader.len() as u64).with_style(style());
        while let Some(batch) = reader.try_next().await.map_err(wrap)? {
            for (row, error) in batch.errors() {
                bar.suspend(|| write_line(format_args!("{}: {error}", row.name())))?;
            }
            bar.inc(batch.len() as u64);
        }
        bar.finish_and_clear();
        let report = Report::new(&reader.stats(), start.elapsed());
        self.format.report(&report)?;
        Ok(if report.cached == report.samples {
            Exit::Success
        } else {
            Exit::Failure
        })
    }

    async fn reader(&self) -> anyhow::Result<PushdownReaderBuilder> {
        let mut builder = PushdownReader::builder()
            .store(self.connection.store())
            .pipeline(&self.pipeline)
            .mode(Mode::Pushdown)
            .split(self.stage.map_or(Split::Full, Split::At))
            .warm(WarmUp {
                keep_seconds: self.keep,
            })
            .on_error(OnError::Report)
            .batch_size(BATCH_SAMPLES)
            .epoch(self.randomness.epoch);
        if let Some(seed) = self.randomness.seed {
            builder = builder.seed(seed).shuffle(false);
        }
        if let Some(folder) = &self.connection.models {
            builder = builder.models(folder);
        }
        let store = self.connection.store().build().await;
        let objects = match store {
            Ok(store) => Box::pin(self.data_set.objects(&store, &[])).await,
            Err(error) => Err(error),
        };
        Ok(builder.objects(objects.map_err(|error| PipelineError::wrap("", error))?))
    }
}

fn ratio(part: u64, all: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts, of which a few digits matter")]
    let ratio = part as f64 / all.max(1) as f64;
    ratio
}

/// A time such as `90s`, `30m`, `24h` or `7d`, in seconds.
fn parse_time(text: &str) -> Result<NonZeroU32, String> {
    let time = humantime::parse_duration(text).ok();
    let seconds = time.and_then(|time| u32::try_from(time.as_secs()).ok());
    seconds
        .filter(|seconds| *seconds <= Pin::MAX_KEEP_SECONDS)
        .and_then(NonZeroU32::new)
        .ok_or_else(|| format!("expected a time of 1s to 30d, such as 24h or 7d, found {text}"))
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:30} {pos}/{len} samples  {per_sec}  {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let seconds = |text| parse_time(text).map(NonZeroU32::get).ok();
        for (text, expected) in [
            ("1s", Some(1)),
            ("90m", Some(5_400)),
            ("24h", Some(86_400)),
            ("30d", Some(2_592_000)),
            ("31d", None),
            ("0s", None),
            ("24", None),
            ("h", None),
            ("", None),
            ("-1h", None),
            ("1hh", None),
            ("99999999999d", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn a_report_says_which_part_is_cached() {
        let stats = Stats {
            warmed: 63,
            not_warmed: 35,
            errors: 2,
            gateway_cache_hits: 40,
            ..Stats::default()
        };
        insta::assert_snapshot!(Report::new(&stats, Duration::from_secs(90)));
        let all = Stats {
            warmed: 5,
            ..Stats::default()
        };
        assert!(
            Report::new(&all, Duration::ZERO)
                .to_string()
                .starts_with("1.00 cached: 5 of 5 samples")
        );
    }
}

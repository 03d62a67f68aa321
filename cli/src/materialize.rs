//! `pushdown materialize`: writes the values of a data set as objects of their own.

use std::{fmt, num::NonZeroU32, time::Duration};

use clap::{Args, ValueEnum};
use indicatif::{HumanBytes, HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use pushdown_client::{
    materialize::{BadSample, Estimate, Materialize as Job, Materialized, PartFormat, Progress},
    store::{Store, StoreBuilder},
};
use serde::Serialize;

use crate::{
    Exit,
    connection::{Connection, Randomness},
    data_set::DataSet,
    errors::PipelineError,
    location::Location,
    print::{Count, Format},
    progress,
    terminal::write_line,
};

/// Bad samples that are printed by name; the manifest has all of them.
const SHOWN_ERRORS: usize = 20;

/// Write the values of a pipeline for a whole data set, as shards or Parquet files
///
/// A gateway reads the objects and writes the parts; values never cross the link of this host. Run again, it makes the parts that are
/// missing, and the result has the same bytes. The target gets the parts, `_recipe.json` and at the end `_manifest.json`.
#[derive(Debug, Args)]
pub(crate) struct Materialize {
    #[command(flatten)]
    data_set: DataSet,
    /// Where the parts go: no other objects may be there
    #[arg(value_name = "s3://BUCKET/TARGET")]
    target: Location,
    /// Pipeline for every object; see `pushdown steps`
    #[arg(long, short)]
    pipeline: String,
    /// Format of the parts
    #[arg(long, value_enum)]
    format: PartsFormat,
    /// Label of each object: `dir`, the number of its first folder after the prefix
    #[arg(long, value_enum, conflicts_with = "index")]
    labels: Option<LabelsBy>,
    /// With --index: extensions of members that travel along unchanged, such as cls,json
    #[arg(long, value_name = "EXT,..", value_delimiter = ',', requires = "index")]
    columns: Vec<String>,
    /// Samples of a part, at most 4096 [default: as many as are made in 5 minutes and take 256 MiB, by a trial]
    #[arg(long, value_name = "N")]
    part_samples: Option<NonZeroU32>,
    /// Add parts for objects that a complete target lacks
    #[arg(long)]
    append: bool,
    /// Compute on this host, without a gateway: all objects and parts cross its link
    #[arg(long)]
    local: bool,
    /// Show how many parts, bytes and seconds it takes, by a trial of 16 samples, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the report as JSON
    #[command(flatten)]
    report: Format,
    #[command(flatten)]
    randomness: Randomness,
    #[command(flatten)]
    target_store: TargetStore,
    #[command(flatten)]
    connection: Connection,
}

/// The store of the parts, if it is another one.
#[derive(Debug, Args)]
#[command(next_help_heading = "Store of the target, if it is another one")]
struct TargetStore {
    /// URL of the store of the parts
    #[arg(id = "target-endpoint-url", long, value_name = "URL")]
    endpoint_url: Option<String>,
    /// Profile with the credentials for the parts
    #[arg(id = "target-profile", long, value_name = "NAME")]
    profile: Option<String>,
    /// Region of the bucket of the parts
    #[arg(id = "target-region", long, value_name = "NAME")]
    region: Option<String>,
}

/// Formats of parts.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum PartsFormat {
    #[value(help = "Tar shards as WebDataset reads them")]
    Wds,
    #[value(help = "Parquet files as Hugging Face datasets reads them")]
    Parquet,
}

/// Where labels come from.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum LabelsBy {
    Dir,
}

/// What was written.
#[derive(Debug, Serialize)]
struct Report {
    samples: u64,
    parts: u64,
    /// Parts that this run has written.
    parts_written: u64,
    bytes: u64,
    /// Objects that no step can process.
    errors: u64,
    /// Objects that are gone.
    vanished: u64,
    /// CPU time of the steps of this run.
    cpu_seconds: f64,
    seconds: f64,
}

/// What a run would write.
#[derive(Debug, Serialize)]
struct Plan {
    samples: u64,
    samples_per_part: u32,
    parts: u64,
    /// Parts that are there.
    parts_done: u64,
    /// Bytes of the missing parts.
    bytes: u64,
    cpu_seconds: f64,
    seconds: f64,
}

impl From<PartsFormat> for PartFormat {
    fn from(format: PartsFormat) -> Self {
        match format {
            PartsFormat::Wds => Self::Wds,
            PartsFormat::Parquet => Self::Parquet,
        }
    }
}

impl From<&Materialized> for Report {
    fn from(done: &Materialized) -> Self {
        Self {
            samples: done.samples,
            parts: done.parts,
            parts_written: done.parts_written,
            bytes: done.bytes,
            errors: done.errors.len() as u64,
            vanished: done.vanished.len() as u64,
            cpu_seconds: done.cpu_seconds,
            seconds: done.seconds,
        }
    }
}

impl From<Estimate> for Plan {
    fn from(estimate: Estimate) -> Self {
        let Estimate {
            samples,
            samples_per_part,
            parts,
            parts_done,
            bytes,
            cpu_seconds,
            seconds,
        } = estimate;
        Self {
            samples,
            samples_per_part,
            parts,
            parts_done,
            bytes,
            cpu_seconds,
            seconds,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} in {} of {}, {} of them new; {} errors, {} gone; {}",
            Count(usize::try_from(self.samples).unwrap_or(usize::MAX), "sample"),
            Count(usize::try_from(self.parts).unwrap_or(usize::MAX), "part"),
            HumanBytes(self.bytes),
            HumanCount(self.parts_written),
            HumanCount(self.errors),
            HumanCount(self.vanished),
            HumanDuration(Duration::from_secs_f64(self.seconds)),
        )
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} in {} of up to {}, {} there already; about {} to write, {} of CPU time, {}",
            Count(usize::try_from(self.samples).unwrap_or(usize::MAX), "sample"),
            Count(usize::try_from(self.parts).unwrap_or(usize::MAX), "part"),
            Count(self.samples_per_part as usize, "sample"),
            HumanCount(self.parts_done),
            HumanBytes(self.bytes),
            HumanDuration(Duration::from_secs_f64(self.cpu_seconds)),
            HumanDuration(Duration::from_secs_f64(self.seconds)),
        )
    }
}

impl Materialize {
    pub(crate) async fn run(self) -> anyhow::Result<Exit> {
        let wrap = |error| PipelineError::wrap(&self.pipeline, error);
        let job = Box::pin(self.job()).await.map_err(wrap)?;
        if self.dry_run {
            let estimate = Box::pin(job.estimate()).await.map_err(wrap)?;
            self.report.report(&Plan::from(estimate))?;
            return Ok(Exit::Success);
        }
        let bar = progress::bar(0).with_style(style());
        let shown = bar.clone();
        let done = Box::pin(job.on_progress(move |progress| show(&shown, &progress)).run()).await;
        bar.finish_and_clear();
        let done = done.map_err(wrap)?;
        for BadSample { name, code, message } in done.errors.iter().take(SHOWN_ERRORS) {
            write_line(format_args!("{name}: {code}: {message}"))?;
        }
        if done.errors.len() > SHOWN_ERRORS {
            write_line(format_args!(
                "and {} others, in _manifest.json",
                done.errors.len() - SHOWN_ERRORS
            ))?;
        }
        for name in done.vanished.iter().take(SHOWN_ERRORS) {
            write_line(format_args!("{name}: it is gone from the source"))?;
        }
        self.report.report(&Report::from(&done))?;
        Ok(Exit::Success)
    }

    async fn job(&self) -> pushdown_client::Result<Job> {
        let store = self.connection.store().build().await?;
        let target_store = match self.target_store.builder() {
            Some(builder) => Some(builder.build().await?),
            None => None,
        };
        let objects = self.data_set.objects(&store, &self.columns).await?;
        let Location { bucket, key } = &self.data_set.prefix;
        let mut job = Job::new(store, bucket, key, &self.pipeline, self.format.into())
            .to(&self.target.bucket, &self.target.key)
            .objects(objects)
            .epoch(self.randomness.epoch);
        if let Some(store) = target_store {
            job = job.target_store(store);
        }
        if let Some(seed) = self.randomness.seed {
            job = job.seed(seed);
        }
        if let Some(folder) = &self.connection.models {
            job = job.models(folder);
        }
        if let Some(LabelsBy::Dir) = self.labels {
            job = job.label_folders();
        }
        if let Some(samples) = self.part_samples {
            job = job.samples_per_part(samples);
        }
        if self.append {
            job = job.append();
        }
        if self.local {
            job = job.local();
        }
        Ok(job)
    }
}

impl TargetStore {
    /// The settings of the other store, if one is set.
    fn builder(&self) -> Option<StoreBuilder> {
        if self.endpoint_url.is_none() && self.profile.is_none() && self.region.is_none() {
            return None;
        }
        // A gateway is that of the source.
        let mut store = Store::builder().gateway("");
        if let Some(url) = &self.endpoint_url {
            store = store.endpoint(url);
        }
        if let Some(profile) = &self.profile {
            store = store.profile(profile);
        }
        if let Some(region) = &self.region {
            store = store.region(region);
        }
        Some(store)
    }
}

fn show(bar: &ProgressBar, progress: &Progress) {
    bar.set_length(progress.samples);
    bar.set_position(progress.samples_done);
    bar.set_message(format!("{} of {} parts", progress.parts_done, progress.parts));
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:30} {pos}/{len} samples  {msg}  {per_sec}  {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_sentences() {
        let done = Materialized {
            samples: 12_345,
            parts: 13,
            parts_written: 5,
            bytes: 1 << 30,
            cpu_seconds: 12.0,
            seconds: 90.0,
            errors: Vec::new(),
            vanished: vec!["a".to_owned()],
        };
        let plan = Plan::from(Estimate {
            samples: 12_345,
            samples_per_part: 1024,
            parts: 13,
            parts_done: 1,
            bytes: 1 << 30,
            cpu_seconds: 7200.0,
            seconds: 1800.0,
        });
        insta::assert_snapshot!(format!("{}{plan}", Report::from(&done)));
    }
}

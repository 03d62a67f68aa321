//! `pushdown demo transfer`: a head is trained here on the features of a frozen model, read in several ways.

use std::{path::PathBuf, process::ExitCode, time::Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use tempfile::TempDir;

use super::{
    admin::Admin,
    features::{Features, Source, Way},
    head::Head,
    labels::{self, Dataset},
    report::{Line, Part, Report},
};
use crate::{
    connection::Connection,
    fault::{PipelineFault, Usage},
    location::Location,
    print::Format,
    progress::{self, Listing},
};

/// Made by `scripts/models.sh`.
const PIPELINE: &str = "decode | resize(short=256) | center_crop(224) | to_float \
    | normalize(model=efficientnet_lite0) | model(efficientnet_lite0, until=features) | cast(f16)";
const AUGMENTED: &str = "decode | random_resized_crop(224) | flip_h | to_float \
    | normalize(model=efficientnet_lite0) | model(efficientnet_lite0, until=features) | cast(f16)";
const WAYS: [Way; 4] = [Way::Plain, Way::Pushed, Way::Auto, Way::Keep];

/// Train a head on the features of a frozen model, reading in several ways, and compare them
///
/// A quarter of the samples is held out, by the hash of their keys, of each class alike. On the features of the others a
/// logistic head is trained: once on one epoch, and once on some augmented ones, whose features are new every time. The
/// head must not depend on the way in which samples are read; what reading costs does.
#[derive(Debug, Args)]
pub(crate) struct Transfer {
    /// The objects
    #[arg(value_name = "s3://BUCKET/PREFIX")]
    prefix: Location,
    /// Lines of `key,label`: the key with or without the prefix; 0, 1 or a probability
    #[arg(long, value_name = "FILE")]
    labels: PathBuf,
    /// Labels from here on are positive
    #[arg(long, value_name = "LABEL", default_value_t = 0.5)]
    threshold: f64,
    /// What makes features of an object; see `pushdown steps`
    #[arg(long, short, default_value = PIPELINE)]
    pipeline: String,
    /// The same for the augmented epochs
    #[arg(long, value_name = "PIPELINE", default_value = AUGMENTED)]
    augmented_pipeline: String,
    /// Augmented epochs, 0 for none
    #[arg(long, value_name = "N", default_value_t = 10)]
    epochs: u32,
    /// So many samples only, of each class alike
    #[arg(long, value_name = "N")]
    samples: Option<usize>,
    /// How to read
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = WAYS)]
    ways: Vec<Way>,
    /// URL of the store itself, for plain reads [default: the gateway, which forwards them]
    #[arg(long, value_name = "URL")]
    plain_endpoint: Option<String>,
    /// URL of the gateway's admin port, which tells its CPU time
    #[arg(long, value_name = "URL")]
    admin: Option<String>,
    /// Folder for what is kept [default: one that goes away]
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Strength of the penalty on the head's weights
    #[arg(long, value_name = "L2", default_value_t = 100.0)]
    l2: f64,
    /// Seed of the random steps
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    connection: Connection,
}

impl Transfer {
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        let data = self.dataset().await?;
        let admin = self.admin.as_deref().map(Admin::new).transpose()?;
        let passing = TempDir::with_prefix("pushdown-kept-")?;
        let source = Source {
            connection: &self.connection,
            plain_endpoint: self.plain_endpoint.as_deref(),
            admin: admin.as_ref(),
            bucket: &self.prefix.bucket,
            objects: &data.objects,
            seed: self.seed,
            folder: self.keep.as_deref().unwrap_or_else(|| passing.path()),
        };
        let bar = progress::bar(self.reads(&data)).with_style(style());
        let parts = self.parts(&source, &data, &bar).await?;
        bar.finish_and_clear();
        let report = Report::new(&data, parts);
        self.format.report(&report)?;
        Ok(ExitCode::SUCCESS)
    }

    async fn dataset(&self) -> anyhow::Result<Dataset> {
        if self.l2 <= 0.0 || !self.l2.is_finite() {
            return Err(Usage(format!("the penalty is {}, expected a positive number", self.l2)).into());
        }
        let labels = labels::read(&self.labels, self.threshold)?;
        for pipeline in [&self.pipeline, &self.augmented_pipeline] {
            // Before anything is read, and with the place of the fault.
            self.connection.pipeline(pipeline).await?;
        }
        let fault = |error| PipelineFault::of(&self.pipeline, error);
        let store = self.connection.store().build().await.map_err(fault)?;
        let Location { bucket, key } = &self.prefix;
        let listing = Listing::of(&self.prefix);
        let objects = store
            .list_with(bucket, key, |objects| listing.listed(objects))
            .await;
        drop(listing);
        let objects = objects.map_err(fault)?;
        anyhow::ensure!(
            !objects.is_empty(),
            "there is nothing to read under {}",
            self.prefix
        );
        Dataset::new(&self.prefix, objects, labels, self.samples)
    }

    /// Samples that are read, all ways together.
    fn reads(&self, data: &Dataset) -> u64 {
        let once: usize = self
            .ways
            .iter()
            .map(|way| if *way == Way::Keep { 2 } else { 1 })
            .sum();
        let augmented = data.train * self.epochs as usize * self.ways.len();
        (once * data.objects.len() + augmented) as u64
    }

    async fn parts(
        &self,
        source: &Source<'_>,
        data: &Dataset,
        bar: &ProgressBar,
    ) -> anyhow::Result<Vec<Part>> {
        let mut once = Part::new("one epoch".to_owned(), &self.pipeline);
        // What each way makes of the samples that are held out, for the heads of the augmented epochs.
        let mut tests = Vec::new();
        for way in &self.ways {
            bar.set_message(way.name());
            let (features, cost) = source.read(*way, &self.pipeline, 1, bar).await?;
            let (train, test) = features.split(data.train);
            let (scores, training) = self.scores(data, &train, &test);
            once.push(data, Line::new(way.name(), cost, training), &scores);
            if *way == Way::Keep {
                let (again, cost) = source.read(*way, &self.pipeline, 1, bar).await?;
                let (train, test) = again.split(data.train);
                let (scores, training) = self.scores(data, &train, &test);
                once.push(data, Line::new("keep, again", cost, training), &scores);
            }
            tests.push(test);
        }
        if self.epochs == 0 {
            return Ok(vec![once]);
        }
        let name = format!("{} augmented epochs of those to train on", self.epochs);
        let mut augmented = Part::new(name, &self.augmented_pipeline);
        let train_only = Source {
            objects: &data.objects[..data.train],
            ..*source
        };
        for (way, test) in self.ways.iter().zip(&tests) {
            bar.set_message(format!("{}, augmented", way.name()));
            let (train, cost) = train_only
                .read(*way, &self.augmented_pipeline, self.epochs, bar)
                .await?;
            let (scores, training) = self.scores(data, &train, test);
            augmented.push(data, Line::new(way.name(), cost, training), &scores);
        }
        Ok(vec![once, augmented])
    }

    /// Trains on epochs of the samples to train on, and scores those that are held out; with the seconds of the training.
    fn scores(&self, data: &Dataset, train: &Features, test: &Features) -> (Vec<f64>, f64) {
        let labels: Vec<bool> = data
            .train_labels()
            .iter()
            .copied()
            .cycle()
            .take(train.len())
            .collect();
        let start = Instant::now();
        let head = Head::train(train, &labels, self.l2);
        let training = start.elapsed().as_secs_f64();
        (test.rows().map(|row| head.score(row)).collect(), training)
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:30} {pos}/{len} samples read  {per_sec}  {msg}  {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

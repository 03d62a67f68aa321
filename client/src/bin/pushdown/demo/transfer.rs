//! `pushdown demo transfer`: trains a head on the features of a frozen model, read with several methods.

use std::{path::PathBuf, process::ExitCode, time::Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use tempfile::TempDir;

use super::{
    admin::Admin,
    features::{Features, ReadMethod, SampleSource},
    head::Head,
    labels::{self, Dataset},
    report::{Report, ReportLine, ReportPart},
};
use crate::{
    connection::Connection,
    errors::{PipelineError, Usage},
    location::Location,
    print::Format,
    progress::{self, Listing},
};

/// The model is prepared by `scripts/models.sh`.
const PIPELINE: &str = "decode | resize(short=256) | center_crop(224) | to_float \
    | normalize(model=efficientnet_lite0) | model(efficientnet_lite0, until=features) | cast(f16)";
const AUGMENTED: &str = "decode | random_resized_crop(224) | flip_h | to_float \
    | normalize(model=efficientnet_lite0) | model(efficientnet_lite0, until=features) | cast(f16)";
const METHODS: [ReadMethod; 4] = [
    ReadMethod::Plain,
    ReadMethod::Pushed,
    ReadMethod::Auto,
    ReadMethod::Cached,
];

/// Train a head on the features of a frozen model with several read methods, and compare them
///
/// A quarter of the samples of each class is held out, by the hash of their keys. A logistic head is trained on the features of
/// the others: once on one epoch, and once on several augmented epochs, whose features are new every time. The head must not
/// depend on the read method; the cost of reading does.
#[derive(Debug, Args)]
pub(crate) struct Transfer {
    /// The objects
    #[arg(value_name = "s3://BUCKET/PREFIX")]
    prefix: Location,
    /// Lines of `key,label`: the key with or without the prefix; 0, 1 or a probability
    #[arg(long, value_name = "FILE")]
    labels: PathBuf,
    /// Lowest label that is positive
    #[arg(long, value_name = "LABEL", default_value_t = 0.5)]
    threshold: f64,
    /// Pipeline that computes the features of an object; see `pushdown steps`
    #[arg(long, short, default_value = PIPELINE)]
    pipeline: String,
    /// Pipeline for the augmented epochs
    #[arg(long, value_name = "PIPELINE", default_value = AUGMENTED)]
    augmented_pipeline: String,
    /// Augmented epochs, 0 for none
    #[arg(long, value_name = "N", default_value_t = 10)]
    epochs: u32,
    /// Use only this many samples, with the same share of each class
    #[arg(long, value_name = "N")]
    samples: Option<usize>,
    /// Read methods to compare
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = METHODS)]
    methods: Vec<ReadMethod>,
    /// URL of the store itself, for plain reads [default: the gateway, which forwards them]
    #[arg(long, value_name = "URL")]
    plain_endpoint: Option<String>,
    /// URL of the gateway's admin port, to read its CPU time
    #[arg(long, value_name = "URL")]
    admin: Option<String>,
    /// Folder of the value cache [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    value_cache: Option<PathBuf>,
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
        let temporary = TempDir::with_prefix("pushdown-value-cache-")?;
        let source = SampleSource {
            connection: &self.connection,
            plain_endpoint: self.plain_endpoint.as_deref(),
            admin: admin.as_ref(),
            bucket: &self.prefix.bucket,
            objects: &data.objects,
            seed: self.seed,
            cache_folder: self.value_cache.as_deref().unwrap_or_else(|| temporary.path()),
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
            return Err(Usage(format!(
                "invalid penalty: expected a positive number, found {}",
                self.l2
            ))
            .into());
        }
        let labels = labels::read(&self.labels, self.threshold)?;
        for pipeline in [&self.pipeline, &self.augmented_pipeline] {
            // Before anything is read, for an error with a position.
            self.connection.pipeline(pipeline).await?;
        }
        let wrap = |error| PipelineError::wrap(&self.pipeline, error);
        let store = self.connection.store().build().await.map_err(wrap)?;
        let Location { bucket, key } = &self.prefix;
        let listing = Listing::new(&self.prefix);
        let objects = store
            .list_with(bucket, key, |objects| listing.update(objects))
            .await;
        drop(listing);
        let objects = objects.map_err(wrap)?;
        anyhow::ensure!(!objects.is_empty(), "no objects found under {}", self.prefix);
        Dataset::new(&self.prefix, objects, labels, self.samples)
    }

    /// Number of samples read with all methods.
    fn reads(&self, data: &Dataset) -> u64 {
        let once: usize = self
            .methods
            .iter()
            .map(|method| if *method == ReadMethod::Cached { 2 } else { 1 })
            .sum();
        let augmented = data.train * self.epochs as usize * self.methods.len();
        (once * data.objects.len() + augmented) as u64
    }

    async fn parts(
        &self,
        source: &SampleSource<'_>,
        data: &Dataset,
        bar: &ProgressBar,
    ) -> anyhow::Result<Vec<ReportPart>> {
        let mut once = ReportPart::new("one epoch".to_owned(), &self.pipeline);
        // The features of the held-out samples by method, for the heads of the augmented epochs.
        let mut tests = Vec::new();
        for method in &self.methods {
            bar.set_message(method.name());
            let (features, cost) = source.read(*method, &self.pipeline, 1, bar).await?;
            let (train, test) = features.split(data.train);
            let (scores, training) = self.scores(data, &train, &test);
            once.push(data, ReportLine::new(method.name(), cost, training), &scores);
            if *method == ReadMethod::Cached {
                let (again, cost) = source.read(*method, &self.pipeline, 1, bar).await?;
                let (train, test) = again.split(data.train);
                let (scores, training) = self.scores(data, &train, &test);
                once.push(data, ReportLine::new("cached, again", cost, training), &scores);
            }
            tests.push(test);
        }
        if self.epochs == 0 {
            return Ok(vec![once]);
        }
        let name = format!("{} augmented epochs of the training samples", self.epochs);
        let mut augmented = ReportPart::new(name, &self.augmented_pipeline);
        let train_only = SampleSource {
            objects: &data.objects[..data.train],
            ..*source
        };
        for (method, test) in self.methods.iter().zip(&tests) {
            bar.set_message(format!("{}, augmented", method.name()));
            let (train, cost) = train_only
                .read(*method, &self.augmented_pipeline, self.epochs, bar)
                .await?;
            let (scores, training) = self.scores(data, &train, test);
            augmented.push(data, ReportLine::new(method.name(), cost, training), &scores);
        }
        Ok(vec![once, augmented])
    }

    /// Trains on epochs of the training samples. Returns the scores of the held-out samples and the seconds of the training.
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

//! Reads the data set with each method, trains a head on what was read, and collects the results.

use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use tempfile::TempDir;

use crate::{
    admin::Admin,
    arguments::Arguments,
    features::Features,
    head::Head,
    labels::{self, Dataset},
    read::{ReadMethod, SampleSource},
    report::{Report, ReportLine, ReportPart},
};

/// A comparison of the read methods: all of them over one epoch, then all of them over the augmented epochs, if any.
#[derive(Debug)]
struct Comparison<'a> {
    arguments: &'a Arguments,
    data: &'a Dataset,
    source: SampleSource<'a>,
    bar: ProgressBar,
}

/// Reads, trains and compares.
pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<Report> {
    let data = dataset(arguments).await?;
    let admin = arguments.admin.as_deref().map(Admin::new).transpose()?;
    let temporary = TempDir::with_prefix("pushdown-value-cache-")?;
    let cache_folder = arguments.value_cache.as_deref();
    let comparison = Comparison {
        arguments,
        data: &data,
        source: SampleSource {
            arguments,
            admin: admin.as_ref(),
            objects: &data.objects,
            cache_folder: cache_folder.unwrap_or_else(|| temporary.path()),
        },
        bar: ProgressBar::new(total_samples(arguments, &data)).with_style(style()),
    };
    let (once, held_out) = Box::pin(comparison.one_epoch()).await?;
    let mut parts = vec![once];
    if arguments.epochs > 0 {
        parts.push(Box::pin(comparison.augmented_epochs(&held_out)).await?);
    }
    comparison.bar.finish_and_clear();
    Ok(Report::new(&data, parts))
}

/// The labelled objects under the prefix. Checks the arguments before it contacts the gateway.
async fn dataset(arguments: &Arguments) -> anyhow::Result<Dataset> {
    let Arguments { l2, location, .. } = arguments;
    anyhow::ensure!(
        *l2 > 0.0 && l2.is_finite(),
        "invalid penalty: expected a positive number, found {l2}"
    );
    let labels = labels::read(&arguments.labels, arguments.threshold)?;
    let store = arguments.store().build().await?;
    arguments.check_pipelines(&store).await?;
    let objects = store.list_objects(&location.bucket, &location.prefix).await?;
    anyhow::ensure!(!objects.is_empty(), "no objects found under {location}");
    Dataset::new(location, &objects, labels, arguments.samples)
}

/// Number of samples that all methods together read.
fn total_samples(arguments: &Arguments, data: &Dataset) -> u64 {
    let methods = &arguments.methods;
    let once: usize = methods
        .iter()
        .map(|method| if *method == ReadMethod::Cached { 2 } else { 1 })
        .sum();
    let augmented = data.train * arguments.epochs as usize * methods.len();
    (once * data.objects.len() + augmented) as u64
}

impl Comparison<'_> {
    /// Trains on one epoch per method. Also returns the features of the held-out samples by method.
    async fn one_epoch(&self) -> anyhow::Result<(ReportPart, Vec<Features>)> {
        let pipeline = &self.arguments.pipeline;
        let mut part = ReportPart::new("one epoch".to_owned(), pipeline);
        let mut held_out = Vec::new();
        for method in &self.arguments.methods {
            self.bar.set_message(method.name());
            let (features, cost) = self.source.read(*method, pipeline, 1, &self.bar).await?;
            let (train, test) = features.split(self.data.train);
            let (scores, seconds) = self.scores(&train, &test);
            part.push(self.data, ReportLine::new(method.name(), cost, seconds), &scores);
            if *method == ReadMethod::Cached {
                let (again, cost) = self.source.read(*method, pipeline, 1, &self.bar).await?;
                let (train, test) = again.split(self.data.train);
                let (scores, seconds) = self.scores(&train, &test);
                part.push(
                    self.data,
                    ReportLine::new("cached, again", cost, seconds),
                    &scores,
                );
            }
            held_out.push(test);
        }
        Ok((part, held_out))
    }

    /// Trains on the augmented epochs of the training samples, and scores the features of the held-out samples of each method.
    async fn augmented_epochs(&self, held_out: &[Features]) -> anyhow::Result<ReportPart> {
        let Arguments {
            augmented_pipeline: pipeline,
            epochs,
            methods,
            ..
        } = self.arguments;
        let name = format!("{epochs} augmented epochs of the training samples");
        let mut part = ReportPart::new(name, pipeline);
        let training_objects = self.data.objects.select(0..self.data.train);
        let source = SampleSource {
            objects: &training_objects,
            ..self.source
        };
        for (method, test) in methods.iter().zip(held_out) {
            self.bar.set_message(format!("{}, augmented", method.name()));
            let (train, cost) = source.read(*method, pipeline, *epochs, &self.bar).await?;
            let (scores, seconds) = self.scores(&train, test);
            part.push(self.data, ReportLine::new(method.name(), cost, seconds), &scores);
        }
        Ok(part)
    }

    /// Trains on epochs of the training samples. Returns the scores of the held-out samples and the seconds of the training.
    fn scores(&self, train: &Features, test: &Features) -> (Vec<f64>, f64) {
        let labels: Vec<bool> = self
            .data
            .train_labels()
            .iter()
            .copied()
            .cycle()
            .take(train.len())
            .collect();
        let start = Instant::now();
        let head = Head::train(train, &labels, self.arguments.l2);
        let seconds = start.elapsed().as_secs_f64();
        (test.rows().map(|row| head.score(row)).collect(), seconds)
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:30} {pos}/{len} samples read  {per_sec}  {msg}  {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

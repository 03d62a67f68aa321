//! Reads the features of samples with one of several methods, and measures the cost.

use std::{collections::BTreeMap, path::Path, time::Duration};

use clap::ValueEnum;
use futures::TryStreamExt as _;
use indicatif::ProgressBar;
use pushdown::{Step, step::model::Boundary};
use pushdown_client::{
    reader::{Mode, PushdownReader, Split},
    store::Objects,
};
use serde::Serialize;
use tokio::time::Instant;

use crate::{
    admin::Admin,
    arguments::Arguments,
    features::Features,
    process::{cpu_time, peak_bytes, reset_peak},
};

/// How samples are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReadMethod {
    /// Read the objects themselves; the whole pipeline runs on this host
    Plain,
    /// The gateway runs the whole pipeline
    Pushed,
    /// The planner chooses the split
    Auto,
    /// The planner chooses the split, with a value cache
    Cached,
}

/// The samples to read, and from where.
#[derive(Debug)]
pub(crate) struct SampleSource<'a> {
    pub(crate) arguments: &'a Arguments,
    pub(crate) admin: Option<&'a Admin>,
    pub(crate) objects: &'a Objects,
    /// The value cache for [`ReadMethod::Cached`].
    pub(crate) cache_folder: &'a Path,
}

/// The cost of reading.
#[derive(Debug, Serialize)]
pub(crate) struct ReadCost {
    pub(crate) mode: &'static str,
    pub(crate) samples: u64,
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    /// Set if the gateway's admin port is known.
    pub(crate) gateway_cpu_seconds: Option<f64>,
    /// Peak memory of this process.
    pub(crate) peak_bytes: Option<u64>,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) stored_bytes: u64,
    pub(crate) cache_hits: u64,
    /// Samples by the stage at which they arrived.
    pub(crate) stages: BTreeMap<u8, u64>,
    /// The steps in force, with models cut as planned.
    pub(crate) steps: Vec<String>,
    /// The plan in force at the end, for people.
    pub(crate) plan: Option<String>,
}

impl ReadMethod {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Pushed => "pushed",
            Self::Auto => "auto",
            Self::Cached => "cached",
        }
    }

    const fn mode(self) -> Mode {
        match self {
            Self::Plain => Mode::Plain,
            Self::Pushed => Mode::Pushdown,
            Self::Auto | Self::Cached => Mode::Auto,
        }
    }
}

impl SampleSource<'_> {
    /// Reads all samples in their order, for a number of epochs.
    pub(crate) async fn read(
        &self,
        method: ReadMethod,
        pipeline: &str,
        epochs: u32,
        bar: &ProgressBar,
    ) -> anyhow::Result<(Features, ReadCost)> {
        let gateway = self.gateway_cpu().await?;
        reset_peak();
        let (start, cpu) = (Instant::now(), cpu_time());
        let mut reader = self.reader(method, pipeline).await?;
        let mut features = Features::default();
        let mut stages = BTreeMap::new();
        for epoch in 0..epochs {
            reader.set_epoch(epoch);
            while let Some(batch) = reader.try_next().await? {
                if let Some(stacked) = batch.stack()? {
                    features.extend(&stacked)?;
                }
                for row in batch.rows() {
                    *stages.entry(row.stage).or_default() += 1;
                }
                bar.inc(batch.len() as u64);
            }
        }
        let (elapsed, cpu) = (start.elapsed(), cpu_time().saturating_sub(cpu));
        let mut cost = ReadCost::new(&reader, elapsed, cpu, stages);
        cost.gateway_cpu_seconds = self
            .gateway_cpu()
            .await?
            .zip(gateway)
            .map(|(after, before)| after - before);
        Ok((features, cost))
    }

    /// A reader that delivers the samples unshuffled, so that all methods see the same order.
    async fn reader(&self, method: ReadMethod, pipeline: &str) -> pushdown_client::Result<PushdownReader> {
        let mut store = self.arguments.store();
        if let (ReadMethod::Plain, Some(url)) = (method, &self.arguments.plain_endpoint) {
            store = store.endpoint(url);
        }
        let mut builder = PushdownReader::builder()
            .store(store)
            .objects(self.objects.clone())
            .pipeline(pipeline)
            .mode(method.mode())
            .split(Split::Full)
            .seed(self.arguments.seed)
            .shuffle(false);
        if method == ReadMethod::Cached {
            builder = builder.value_cache(self.cache_folder);
        }
        if let Some(folder) = &self.arguments.models {
            builder = builder.models(folder);
        }
        Box::pin(builder.build()).await
    }

    async fn gateway_cpu(&self) -> anyhow::Result<Option<f64>> {
        match self.admin {
            Some(admin) => Ok(Some(admin.cpu_seconds().await?)),
            None => Ok(None),
        }
    }
}

impl ReadCost {
    fn new(reader: &PushdownReader, elapsed: Duration, cpu: Duration, stages: BTreeMap<u8, u64>) -> Self {
        let stats = reader.stats();
        Self {
            mode: match reader.mode() {
                Mode::Pushdown => "pushdown",
                Mode::Auto => "auto",
                Mode::Plain => "plain",
            },
            samples: stats.samples,
            seconds: elapsed.as_secs_f64(),
            cpu_seconds: cpu.as_secs_f64(),
            gateway_cpu_seconds: None,
            peak_bytes: peak_bytes(),
            received_bytes: stats.wire_bytes_down,
            sent_bytes: stats.wire_bytes_up,
            stored_bytes: stats.stored_bytes,
            cache_hits: stats.cache_hits,
            stages,
            steps: reader.pipeline().steps().iter().map(step_name).collect(),
            plan: reader.plan().map(|plan| plan.to_string()),
        }
    }
}

/// A step's name; for a model, the tensor at which it ends.
fn step_name(step: &Step) -> String {
    if let Step::Model(model) = step {
        let (tensor, _) = model.model().tensor(Boundary::Cut(model.range().to));
        format!("model until {tensor}")
    } else {
        step.name().to_owned()
    }
}

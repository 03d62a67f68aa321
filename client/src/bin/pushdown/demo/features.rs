//! Features of samples, and the cost of reading them with one of several methods.

use std::{collections::BTreeMap, path::Path, time::Duration};

use clap::ValueEnum;
use futures::TryStreamExt as _;
use half::{bf16, f16};
use indicatif::ProgressBar;
use pushdown::DType;
use pushdown_client::{Mode, Object, PushdownReader, Split, Stacked};
use serde::Serialize;
use tokio::time::Instant;

use super::admin::Admin;
use crate::{
    connection::Connection,
    errors::{PipelineError, Usage},
    explain::step_name,
    report::{cpu_time, peak_bytes, reset_peak},
};

/// How samples are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
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

/// A row of numbers for each sample.
#[derive(Debug, Default)]
pub(crate) struct Features {
    values: Vec<f32>,
    width: usize,
}

/// The samples to read, and from where.
#[derive(Debug)]
pub(crate) struct SampleSource<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) plain_endpoint: Option<&'a str>,
    pub(crate) admin: Option<&'a Admin>,
    pub(crate) bucket: &'a str,
    pub(crate) objects: &'a [Object],
    pub(crate) seed: u64,
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

impl Features {
    pub(crate) const fn new(values: Vec<f32>, width: usize) -> Self {
        Self { values, width }
    }

    pub(crate) const fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn len(&self) -> usize {
        self.rows().len()
    }

    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.width.max(1))
    }

    /// Splits after the given number of rows.
    pub(crate) fn split(self, rows: usize) -> (Self, Self) {
        let mut values = self.values;
        let others = values.split_off((rows * self.width).min(values.len()));
        (Self::new(values, self.width), Self::new(others, self.width))
    }

    fn extend(&mut self, stacked: &Stacked) -> anyhow::Result<()> {
        let width = stacked.tensor.shape().iter().skip(1).product();
        anyhow::ensure!(
            self.values.is_empty() || width == self.width,
            "found {width} features, expected {} as before",
            self.width
        );
        self.width = width;
        let data = stacked.tensor.data().as_slice();
        match stacked.tensor.dtype() {
            DType::F32 => self.push(data, f32::from_le_bytes),
            DType::F16 => self.push(data, |bytes| f16::from_le_bytes(bytes).to_f32()),
            DType::Bf16 => self.push(data, |bytes| bf16::from_le_bytes(bytes).to_f32()),
            other => {
                let text = format!(
                    "found a pipeline that ends in {other}, expected floats: let it end in `cast(f16)`"
                );
                return Err(Usage(text).into());
            }
        }
        Ok(())
    }

    fn push<const N: usize>(&mut self, data: &[u8], float: impl Fn([u8; N]) -> f32) {
        let (elements, _) = data.as_chunks::<N>();
        self.values.extend(elements.iter().map(|bytes| float(*bytes)));
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
        let wrap = |error| PipelineError::wrap(pipeline, error);
        let gateway = self.gateway_cpu().await?;
        reset_peak();
        let (start, cpu) = (Instant::now(), cpu_time());
        let mut reader = self.reader(method, pipeline).await.map_err(wrap)?;
        let mut features = Features::default();
        let mut stages = BTreeMap::new();
        for epoch in 0..epochs {
            reader.set_epoch(epoch);
            while let Some(batch) = reader.try_next().await.map_err(wrap)? {
                if let Some(stacked) = batch.stack().map_err(wrap)? {
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

    async fn reader(
        &self,
        method: ReadMethod,
        pipeline: &str,
    ) -> Result<PushdownReader, pushdown_client::Error> {
        let mut store = self.connection.store();
        if let (ReadMethod::Plain, Some(url)) = (method, self.plain_endpoint) {
            store = store.endpoint(url);
        }
        let mut builder = PushdownReader::builder()
            .store(store)
            .bucket(self.bucket)
            .objects(self.objects.to_vec())
            .pipeline(pipeline)
            .mode(method.mode())
            .split(Split::Full)
            .seed(self.seed)
            .shuffle(false);
        if method == ReadMethod::Cached {
            builder = builder.value_cache(self.cache_folder);
        }
        if let Some(folder) = &self.connection.models {
            builder = builder.models(folder);
        }
        builder.build().await
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

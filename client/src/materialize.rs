//! Whole data sets: the values of a pipeline for all objects under a prefix, as objects of their own.
//!
//! [`Materialize`] writes *parts*: part `i` is a stretch of the objects in the order of their keys. A gateway reads the objects of a part,
//! computes their values and writes one object, by signatures of this host; the values never cross the link of this host. The name of a
//! part tells its contents, so that a run that was stopped goes on by a list of the target, and ends with the same bytes.
//!
//! ```no_run
//! use pushdown_client::{materialize::{Materialize, PartFormat}, store::Store};
//!
//! # async fn run() -> Result<(), pushdown_client::Error> {
//! let store = Store::builder().gateway("http://gw:9900").build().await?;
//! let done = Materialize::new(store, "photos", "train/", "decode | resize(short=256) | encode(jpeg, 90)", PartFormat::Wds)
//!     .to("photos-small", "train/")
//!     .run()
//!     .await?;
//! println!("{} samples in {} parts", done.samples, done.parts);
//! # Ok(())
//! # }
//! ```

mod data_set;
mod estimate;
mod gateway;
mod labels;
mod layout;
mod local;
mod maker;
mod manifest;
mod open;
mod recipe;
mod run;
mod target;

use std::{
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    sync::Arc,
};

pub use pushdown::part::{Label, LabelType, PartFormat};

pub use self::{
    estimate::Estimate,
    labels::{LabelValues, Labels},
    manifest::{BadSample, Manifest, ManifestPart},
    recipe::Recipe,
    run::{Materialized, Progress},
};
use crate::{
    error::Result,
    objects::Objects,
    store::{HiddenObjects, Store},
};

/// A job that writes the values of a data set. See [the chapter](self).
#[derive(Debug, Clone)]
#[must_use]
pub struct Materialize {
    store: Store,
    bucket: String,
    prefix: String,
    objects: Option<Objects>,
    hidden: HiddenObjects,
    pipeline: String,
    models: Option<PathBuf>,
    format: PartFormat,
    labels: LabelSource,
    seed: Option<u64>,
    epoch: u32,
    target_store: Option<Store>,
    target: Option<(String, String)>,
    samples_per_part: Option<NonZeroU32>,
    appends: bool,
    is_local: bool,
    threads: Option<NonZeroUsize>,
    observer: Observer,
}

/// Where labels come from.
#[derive(Debug, Clone, Default)]
enum LabelSource {
    #[default]
    None,
    Folders,
    Values(Labels),
}

/// Who hears of the progress.
#[derive(Clone)]
struct Observer(Arc<dyn Fn(Progress) + Send + Sync>);

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Observer")
    }
}

impl Materialize {
    /// A job for the objects of a bucket under a prefix, and the pipeline for each of them.
    pub fn new(
        store: Store,
        bucket: impl Into<String>,
        prefix: impl Into<String>,
        pipeline: impl Into<String>,
        format: PartFormat,
    ) -> Self {
        Self {
            store,
            bucket: bucket.into(),
            prefix: prefix.into(),
            objects: None,
            hidden: HiddenObjects::default(),
            pipeline: pipeline.into(),
            models: None,
            format,
            labels: LabelSource::None,
            seed: None,
            epoch: 0,
            target_store: None,
            target: None,
            samples_per_part: None,
            appends: false,
            is_local: false,
            threads: None,
            observer: Observer(Arc::new(|_| ())),
        }
    }

    /// The bucket and the prefix of the parts. Required.
    pub fn to(mut self, bucket: impl Into<String>, prefix: impl Into<String>) -> Self {
        self.target = Some((bucket.into(), prefix.into()));
        self
    }

    /// The store of the parts, if it is another one. The gateway's operator has to allow it.
    pub fn target_store(mut self, store: Store) -> Self {
        self.target_store = Some(store);
        self
    }

    /// These objects instead of a list of the prefix. They need ETags.
    pub fn objects(mut self, objects: Objects) -> Self {
        self.objects = Some(objects);
        self
    }

    /// Whether a list of the prefix has hidden objects.
    pub const fn hidden(mut self, hidden: HiddenObjects) -> Self {
        self.hidden = hidden;
        self
    }

    /// A folder of models, instead of those of the gateway.
    pub fn models(mut self, folder: impl Into<PathBuf>) -> Self {
        self.models = Some(folder.into());
        self
    }

    /// Labels of the objects that are given, in their order.
    pub fn labels(mut self, labels: Labels) -> Self {
        self.labels = LabelSource::Values(labels);
        self
    }

    /// Labels of all objects by their folders: [`Labels::of_folders`].
    pub fn label_folders(mut self) -> Self {
        self.labels = LabelSource::Folders;
        self
    }

    /// Seed of the random steps, which they need.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Epoch of the random steps. Default 0.
    pub const fn epoch(mut self, epoch: u32) -> Self {
        self.epoch = epoch;
        self
    }

    /// Samples of a part, 1 to 4,096. Default: as many as are made in 5 minutes and take 256 MiB, by a trial of 16 samples.
    pub const fn samples_per_part(mut self, samples: NonZeroU32) -> Self {
        self.samples_per_part = Some(samples);
        self
    }

    /// Adds parts for objects that a complete target lacks. Without it they are an error.
    pub const fn append(mut self) -> Self {
        self.appends = true;
        self
    }

    /// Computes on this host instead of a gateway. Every object and every part crosses its link then.
    pub const fn local(mut self) -> Self {
        self.is_local = true;
        self
    }

    /// Threads of this host that compute. Default: one for each CPU.
    pub const fn threads(mut self, threads: Option<NonZeroUsize>) -> Self {
        self.threads = threads;
        self
    }

    /// Calls `observe` whenever there is progress.
    pub fn on_progress(mut self, observe: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.observer = Observer(Arc::new(observe));
        self
    }

    /// Says what a run would write, by a trial of 16 samples. Writes nothing.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn estimate(self) -> Result<Estimate> {
        let job = Box::pin(self.open()).await?;
        Box::pin(job.estimate()).await
    }

    /// Writes all parts that are missing, and the manifest.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for settings that do not fit, and for a target with parts of another recipe;
    /// [`ErrorKind::NotAGateway`](crate::ErrorKind) for a gateway that cannot make parts; [`ErrorKind::Sample`](crate::ErrorKind) for a sample
    /// that cannot be read, such as one without rights; those of the stores. What was written stays, and the next run goes on from there.
    pub async fn run(self) -> Result<Materialized> {
        let job = Box::pin(self.open()).await?;
        Box::pin(job.run()).await
    }
}

//! The value cache: values that are the same in every epoch, stored in a folder so that they are requested only once.
//!
//! One value is cached per object: the last one before the first random step that has no more bytes than the object.
//! The object itself is never cached: this is not a mirror of the store. The further columns of a sample are cached with its value.

mod claim;
mod columns;
mod etags;
mod folder;
mod listed_sample;
mod reasons;
mod total;

use std::path::PathBuf;

use bytes::Bytes;
use pushdown::{
    Limits, Pipeline, Sample, available_engine,
    pipeline::Digest,
    wire::{MAX_COLUMN_BYTES, stored},
};

use crate::{
    error::{Error, Result},
    objects::Objects,
};
use claim::KnownHolders;
pub(crate) use claim::{Claim, LEASE};
use etags::Etags;
use folder::Folder;
pub(crate) use listed_sample::ListedSample;
pub use reasons::NotCached;
pub(crate) use reasons::{NotCachedCounters, NotCachedReason};

/// The values of one pipeline and bucket in a cache folder.
#[derive(Debug)]
pub(crate) struct ValueCache {
    folder: Folder,
    bucket: String,
    /// The stages at which a value can be cached, the last one first.
    stages: Vec<CachedStage>,
    /// Whether the steps after them are random.
    has_random_steps: bool,
    etags: Etags,
}

/// How a batch comes by a value.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// The value was cached.
    Cached(CachedValue),
    /// This process fetches and stores it.
    Claimed(Claim),
    /// Another process fetches it.
    Held,
    /// This process fetches it; nobody waits for it.
    Unclaimed,
}

/// A cached value, with the contents of the further columns of its sample.
#[derive(Debug)]
pub(crate) struct CachedValue {
    pub(crate) value: Sample,
    pub(crate) columns: Vec<Option<Bytes>>,
}

/// A stage whose values are the same in every epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CachedStage {
    /// In the pipeline as it was written: the cache does not depend on where a plan cuts models.
    written_stage: usize,
    /// In the pipeline in force.
    pub(crate) stage: usize,
    /// Bytes of a value, if the pipeline alone determines them.
    bytes: Option<u64>,
    /// Canonical text of the steps before it, including digests of models.
    prefix: String,
    /// The properties that engines with the same values share.
    engine: String,
}

impl ValueCache {
    /// Opens a cache of values of `pipeline` in `folder`, of at most `max_bytes`.
    ///
    /// # Errors
    /// If the folder does not exist and cannot be created.
    pub(crate) fn open(folder: PathBuf, max_bytes: u64, bucket: &str, pipeline: &Pipeline) -> Result<Self> {
        let unusable = format!("cannot use the folder {} as a value cache", folder.display());
        let folder =
            Folder::open(folder, max_bytes).map_err(|error| Error::config(unusable).with_source(error))?;
        let steps = pipeline.steps().iter();
        let steady = steps.take_while(|step| !step.is_random()).count();
        let stage = |written_stage: usize| CachedStage {
            written_stage,
            stage: written_stage,
            bytes: pipeline.kinds()[written_stage].bytes(),
            prefix: pipeline.canonical(written_stage),
            engine: available_engine(&pipeline.steps()[..written_stage]).compatibility_key(),
        };
        Ok(Self {
            folder,
            bucket: bucket.to_owned(),
            stages: (1..=steady).rev().map(stage).collect(),
            has_random_steps: steady < pipeline.len(),
            etags: Etags::default(),
        })
    }

    /// Whether the value of an object may be cached at a stage before `steps`, if it is not too large.
    pub(crate) fn may_have_stage_before(&self, steps: usize) -> bool {
        self.stages.iter().any(|cached| cached.stage < steps)
    }

    /// Adopts the stages of `pipeline`: the same pipeline, with its models cut.
    pub(crate) fn set_pipeline(&mut self, pipeline: &Pipeline) {
        for stage in &mut self.stages {
            stage.stage = pipeline.refined_stage(stage.written_stage);
        }
    }

    /// The stage at which a value of an object of `stored` bytes is cached. If the size of a value is only known from the
    /// value, it may still be too large.
    pub(crate) fn stage(&self, stored: Option<u64>) -> Option<&CachedStage> {
        let fits = |stage: &&CachedStage| {
            stage
                .bytes
                .zip(stored)
                .is_none_or(|(value, stored)| value <= stored)
        };
        self.stages.iter().find(fits)
    }

    /// Whether the store must be asked for the ETag of an object before its value can be looked up.
    pub(crate) fn needs_etag(&self, sample: ListedSample<'_>) -> bool {
        self.etags.is_unknown(sample)
    }

    /// Whether neither its list nor the store has an ETag of an object, so that its value cannot be cached.
    pub(crate) fn has_no_etag(&self, sample: ListedSample<'_>) -> bool {
        self.etags.is_missing(sample)
    }

    /// Records the answer of the store for the object with this index in its list: `None` without a usable one.
    pub(crate) fn set_etag(&self, index: usize, etag: Option<&str>) {
        self.etags.set(index, etag);
    }

    /// The objects without a cached value, or without an ETag in the list.
    pub(crate) fn missing(&self, objects: &Objects) -> Objects {
        let is_cached = |index: &usize| {
            let sample = ListedSample::new(objects, *index);
            let stage = self.stage(objects.bytes(*index));
            let digest = stage.and_then(|stage| self.digest(sample, stage));
            digest.is_some_and(|digest| self.folder.contains(&digest))
        };
        objects.select((0..objects.len()).filter(|index| !is_cached(index)))
    }

    /// The first stage at which any of these objects is cached. Once all are cached, no step before it runs.
    pub(crate) fn first_stage(&self, objects: &Objects) -> usize {
        let stages = objects.iter().filter_map(|object| self.stage(object.bytes));
        stages.map(|stage| stage.stage).min().unwrap_or_default()
    }

    /// The cached value of an object, or the claim to fetch it.
    pub(crate) fn load_or_claim(
        &self,
        sample: ListedSample<'_>,
        stage: &CachedStage,
        pipeline: &Pipeline,
        limits: &Limits,
    ) -> Lookup {
        let Some(digest) = self.digest(sample, stage) else {
            return Lookup::Unclaimed;
        };
        let load = || self.load(sample, stage, pipeline, limits);
        if let Some(value) = load() {
            return Lookup::Cached(value);
        }
        match self.folder.claim(&digest) {
            // The holder before may have stored the value since it was looked up.
            Ok(Some(claim)) => load().map_or(Lookup::Claimed(claim), Lookup::Cached),
            Ok(None) => Lookup::Held,
            Err(_unwritable) => Lookup::Unclaimed,
        }
    }

    /// Which of these values are missing, and held by another process.
    pub(crate) fn are_held<'a>(
        &self,
        values: impl Iterator<Item = Option<(ListedSample<'a>, &'a CachedStage)>>,
    ) -> Vec<bool> {
        let mut holders = KnownHolders::default();
        let is_held = |value: Option<(ListedSample<'_>, &CachedStage)>| {
            let digest = value.and_then(|(sample, stage)| self.digest(sample, stage));
            digest.is_some_and(|digest| self.folder.is_held(&digest, &mut holders))
        };
        values.map(is_held).collect()
    }

    /// The cached value of an object.
    pub(crate) fn load(
        &self,
        sample: ListedSample<'_>,
        stage: &CachedStage,
        pipeline: &Pipeline,
        limits: &Limits,
    ) -> Option<CachedValue> {
        let max_bytes = limits.max_value_bytes.saturating_add(MAX_COLUMN_BYTES);
        let mut body = self.folder.read(&self.digest(sample, stage)?, max_bytes)?;
        let columns = columns::split_off(&mut body, sample.columns())?;
        let value = stored::decode(pipeline.kinds().get(stage.stage)?, body, limits).ok()?;
        Some(CachedValue { value, columns })
    }

    /// Caches a value with the further columns, unless it has more bytes than the object.
    ///
    /// # Errors
    /// The reason why it was not cached.
    pub(crate) fn store(
        &self,
        sample: ListedSample<'_>,
        stored: Option<u64>,
        stage: &CachedStage,
        (value, columns): (&Sample, &[Option<Bytes>]),
    ) -> Result<(), NotCachedReason> {
        if stored.is_some_and(|stored| value.bytes() > stored) {
            return Err(self.too_large_reason());
        }
        // Tables are streamed and never cached.
        if matches!(value, Sample::Table(_)) {
            return Err(NotCachedReason::Table);
        }
        let digest = self.digest(sample, stage).ok_or(NotCachedReason::NoEtag)?;
        let mut parts = stored::encode(value).map_err(|_error| NotCachedReason::Unwritable)?;
        parts.extend(columns::encode(columns));
        self.folder.write(&digest, &parts)
    }

    /// The reason for a value that has more bytes than its object.
    pub(crate) const fn too_large_reason(&self) -> NotCachedReason {
        if self.has_random_steps {
            NotCachedReason::Random
        } else {
            NotCachedReason::Larger
        }
    }

    /// Digest of everything that determines the value, without the endpoint. A replaced object has another digest; `None` if it could not be
    /// told from the present one.
    fn digest(&self, sample: ListedSample<'_>, stage: &CachedStage) -> Option<Digest> {
        let object = sample.object();
        let etag = self.etags.get(sample)?;
        let size = object.bytes.map(u64::to_le_bytes);
        let object_parts: [&[u8]; 6] = [
            stage.engine.as_bytes(),
            stage.prefix.as_bytes(),
            self.bucket.as_bytes(),
            object.key.as_bytes(),
            etag.as_bytes(),
            size.as_ref().map_or(&[], |size| &size[..]),
        ];
        let member_parts = sample.member_parts();
        let member_parts = member_parts.iter().map(Vec::as_slice);
        Some(Digest::from_parts(object_parts.into_iter().chain(member_parts)))
    }
}

impl CachedStage {
    /// Whether the value is known in advance to have no more bytes than its object.
    pub(crate) fn is_known_to_fit(&self, stored: Option<u64>) -> bool {
        self.bytes
            .zip(stored)
            .is_some_and(|(value, stored)| value <= stored)
    }
}

#[cfg(test)]
mod tests;

//! Values that are the same in every epoch, kept in a folder, so that nobody asks for them again.
//!
//! Of each object one value is kept: the last one before the first random step that has no more bytes than the object.
//! The object itself is none: this is no mirror.

mod folder;
mod reasons;

use std::path::PathBuf;

use pushdown::{
    Engine, Kind, Limits, Pipeline, Sample,
    pipeline::Digest,
    wire::{self, Form},
};

use crate::{
    error::{Error, Result},
    store::Object,
};
use folder::Folder;
pub use reasons::NotKept;
pub(crate) use reasons::{NotKeptCounters, Reason};

const ARRAY: &str = "application/vnd.safetensors";
const BYTES: &str = "application/octet-stream";

/// What is kept, and where.
#[derive(Debug)]
pub(crate) struct Keep {
    folder: Folder,
    bucket: String,
    /// Those that a value can be kept at, the last one first.
    stages: Vec<KeptStage>,
    /// Steps that come after them are random.
    random: bool,
}

/// A stage whose values are the same in every epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptStage {
    /// In the pipeline as it was written: where a plan cuts models does not change what is kept.
    written: usize,
    /// In the pipeline in force.
    pub(crate) number: usize,
    /// Of a value, where the pipeline alone tells.
    bytes: Option<u64>,
    /// Canonical text of the steps before it, digests of models included.
    prefix: String,
    /// What is the same of all engines that may have made them.
    engine: String,
}

impl Keep {
    /// Keeps values of `pipeline` in `folder`, up to so many bytes.
    ///
    /// # Errors
    /// When there is no such folder and it cannot be made.
    pub(crate) fn open(folder: PathBuf, limit: u64, bucket: &str, pipeline: &Pipeline) -> Result<Self> {
        let unusable = format!("the folder {} cannot be used to keep values", folder.display());
        let folder =
            Folder::open(folder, limit).map_err(|error| Error::config(unusable).with_source(error))?;
        let steps = pipeline.steps().iter();
        let steady = steps.take_while(|step| !step.is_random()).count();
        let stage = |written: usize| KeptStage {
            written,
            number: written,
            bytes: pipeline.kinds()[written].bytes(),
            prefix: pipeline.canonical(written),
            engine: Engine::for_steps(&pipeline.steps()[..written])
                .unwrap_or_default()
                .compatibility_key(),
        };
        Ok(Self {
            folder,
            bucket: bucket.to_owned(),
            stages: (1..=steady).rev().map(stage).collect(),
            random: steady < pipeline.len(),
        })
    }

    /// From here on `pipeline` is in force, whose models may be cut.
    pub(crate) fn follow(&mut self, pipeline: &Pipeline) {
        for stage in &mut self.stages {
            stage.number = pipeline.refined_stage(stage.written);
        }
    }

    /// The stage that an object of so many bytes is kept at. Where the size of a value turns out only with the value, it
    /// may still be too large.
    pub(crate) fn stage(&self, stored: Option<u64>) -> Option<&KeptStage> {
        let fits = |stage: &&KeptStage| {
            stage
                .bytes
                .zip(stored)
                .is_none_or(|(value, stored)| value <= stored)
        };
        self.stages.iter().find(fits)
    }

    /// The objects of which nothing is kept.
    pub(crate) fn missing(&self, objects: &[Object]) -> Vec<Object> {
        let kept = |object: &Object| {
            self.stage(object.bytes)
                .is_some_and(|stage| self.folder.has(&self.name(object, stage)))
        };
        objects.iter().filter(|object| !kept(object)).cloned().collect()
    }

    /// The first stage that any of these objects is kept at: once all are kept, steps before it run no more.
    pub(crate) fn first_stage(&self, objects: &[Object]) -> usize {
        let stages = objects.iter().filter_map(|object| self.stage(object.bytes));
        stages.map(|stage| stage.number).min().unwrap_or_default()
    }

    /// What is kept of an object.
    pub(crate) fn load(
        &self,
        object: &Object,
        stage: &KeptStage,
        pipeline: &Pipeline,
        limits: &Limits,
    ) -> Option<Sample> {
        let body = self
            .folder
            .read(&self.name(object, stage), limits.max_value_bytes)?;
        let form = match pipeline.kinds().get(stage.number)? {
            Kind::Bytes(_) => BYTES,
            Kind::Image(_) | Kind::Tensor(_) => ARRAY,
            // Tables are not kept: their values flow.
            Kind::Table(_) => return None,
        };
        let value = wire::decode(form, |_| None, body, limits).ok()?;
        pipeline.accepts(stage.number, &value).then_some(value)
    }

    /// Keeps a value, unless it has more bytes than the object.
    ///
    /// # Errors
    /// The reason why it is not kept.
    pub(crate) fn store(
        &self,
        object: &Object,
        stored: Option<u64>,
        stage: &KeptStage,
        value: &Sample,
    ) -> Result<(), Reason> {
        if stored.is_some_and(|stored| value.bytes() > stored) {
            return Err(self.too_large());
        }
        let form = match value {
            Sample::Bytes(_) => Form::Encoded,
            Sample::Image(_) | Sample::Tensor(_) => Form::Safetensors,
            Sample::Table(_) => return Err(Reason::Table),
        };
        let encoded = wire::encode(value.clone(), form, &Kind::from(value));
        let encoded = encoded.map_err(|_error| Reason::Unwritable)?;
        self.folder.write(&self.name(object, stage), &encoded.parts)
    }

    /// Why a value is not kept that has more bytes than its object.
    pub(crate) const fn too_large(&self) -> Reason {
        if self.random {
            Reason::Random
        } else {
            Reason::Larger
        }
    }

    /// Everything that decides on the value, and nothing of the endpoint: a replaced object has another name.
    fn name(&self, object: &Object, stage: &KeptStage) -> Digest {
        let size = object.bytes.map(u64::to_le_bytes);
        let parts: [&[u8]; 6] = [
            stage.engine.as_bytes(),
            stage.prefix.as_bytes(),
            self.bucket.as_bytes(),
            object.key.as_bytes(),
            object.etag.as_deref().unwrap_or_default().as_bytes(),
            size.as_ref().map_or(&[], |size| &size[..]),
        ];
        Digest::from_parts(&parts)
    }
}

impl KeptStage {
    /// Whether it is known beforehand that the value has no more bytes than its object.
    pub(crate) fn surely_fits(&self, stored: Option<u64>) -> bool {
        self.bytes
            .zip(stored)
            .is_some_and(|(value, stored)| value <= stored)
    }
}

#[cfg(test)]
mod tests;

//! The stage of an answer, and what follows from it before a step runs.
//!
//! The stage is decided once, when the head of the object is known: from its first bytes, or from what the gateway remembers of
//! them. All that comes after takes it from the [`StagedJob`].

use std::sync::Arc;

use http::request::Parts;
use pushdown::{
    BytesKind, Kind, PeakMemory,
    wire::{ObjectForm, Split},
};

use super::{Services, http::AnswerForm, job::PipelineJob};
use crate::error::Result;

/// The stage of an answer to a GET or HEAD, and the form of its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerStage {
    /// The number of steps to run.
    pub(super) stage: usize,
    /// The encoding of the value.
    pub(super) form: AnswerForm,
}

/// One sample: what its request asks for, the services that compute it, and the stage of the answer.
#[derive(Debug, Clone)]
pub(super) struct StagedJob {
    pub(super) services: Arc<Services>,
    pub(super) job: Arc<PipelineJob>,
    /// The number of steps to run.
    pub(super) stage: usize,
    /// Memory to make a cropped JPEG of the stored object, in bytes; `None` if the request accepts none or the object
    /// cannot be cropped.
    pub(super) crop_memory: Option<u64>,
    /// Memory of the steps; `None` if it follows only from the whole object.
    pub(super) peak_memory: Option<PeakMemory>,
    /// The kinds of all stages for this object; `None` for those that follow from the text of the pipeline.
    kinds: Option<Vec<Kind>>,
}

impl AnswerStage {
    /// What follows from the text of the pipeline; `None` if the stage depends on the object.
    ///
    /// # Errors
    /// For a split beyond the pipeline, a random step without a seed, and a caller that accepts no form of the value.
    pub(super) fn from_text(parts: &Parts, job: &PipelineJob) -> Result<Option<Self>> {
        if job.split == Split::Smallest {
            return Ok(None);
        }
        let stage = job.pipeline.stage_of(job.split, &BytesKind::default())?;
        let steps = job.dependency_steps(stage);
        job.pipeline.check_randomness(steps, job.seed, job.epoch)?;
        Self::negotiate(parts, job, stage, &job.pipeline.kinds()[stage]).map(Some)
    }

    /// The stage that was decided, and the form that the caller accepts for its value.
    ///
    /// # Errors
    /// For a caller that accepts no form of the value.
    pub(super) fn of_job(parts: &Parts, staged: &StagedJob) -> Result<Self> {
        Self::negotiate(parts, &staged.job, staged.stage, staged.kind())
    }

    fn negotiate(parts: &Parts, job: &PipelineJob, stage: usize, kind: &Kind) -> Result<Self> {
        let form = AnswerForm::negotiate(parts, job, stage, kind)?;
        Ok(Self { stage, form })
    }
}

impl StagedJob {
    /// The job of a table scan, whose stage follows from the text of the pipeline; `None` if the prefix is no scan.
    pub(super) fn of_scan(services: &Arc<Services>, job: &Arc<PipelineJob>) -> Option<Self> {
        let stage = job.scan_stage()?;
        Some(Self {
            services: Arc::clone(services),
            job: Arc::clone(job),
            stage,
            crop_memory: None,
            peak_memory: None,
            kinds: None,
        })
    }

    /// Decides the stage from the first bytes of the object. It is 0 if the value is known to be too large.
    ///
    /// # Errors
    /// For a split beyond the pipeline, and for an object that a step cannot process, unless no stage of a row depends on that.
    pub(super) fn decide(
        services: &Arc<Services>,
        job: &Arc<PipelineJob>,
        object: &BytesKind,
    ) -> Result<Self> {
        let mut stage = job.stage_of(object)?;
        let crop_memory = job.form.and_then(|form| match form {
            ObjectForm::CroppedJpeg => job.pipeline.crop_memory(object, &services.sample_limits()),
        });
        let max_bytes = services.memory.max_bytes(job.position.tenant());
        let has_memory = |bytes: &u64| bytes.saturating_add(object.length.unwrap_or_default()) <= max_bytes;
        let crop_memory = crop_memory.filter(has_memory);
        let object = Kind::Bytes(*object);
        let kinds = match job.pipeline.kinds_for(&object) {
            Ok(kinds) => Some(kinds),
            // The step may be one that the reader runs.
            Err(_) if job.is_row && job.max_bytes.is_none() => None,
            Err(error) => return Err(error.into()),
        };
        let value_bytes = kinds.as_ref().and_then(|kinds| kinds[stage].bytes());
        if value_bytes.is_some_and(|bytes| job.is_too_large(bytes)) {
            stage = 0;
        }
        Ok(Self {
            services: Arc::clone(services),
            job: Arc::clone(job),
            stage,
            crop_memory,
            peak_memory: job.pipeline.peak_memory(0..stage, &object),
            kinds,
        })
    }

    /// The same, with the memory that follows from `object`, which has been read now.
    pub(super) fn with_memory_for(&self, object: &Kind) -> Self {
        Self {
            peak_memory: self.job.pipeline.peak_memory(0..self.stage, object),
            ..self.clone()
        }
    }

    /// The stored object instead of the value.
    pub(super) fn for_stored_object(&self) -> Self {
        Self {
            stage: 0,
            crop_memory: None,
            peak_memory: None,
            ..self.clone()
        }
    }

    /// The kind of the value.
    pub(super) fn kind(&self) -> &Kind {
        self.kind_at(self.stage)
    }

    /// The kind of the value after `stage` steps.
    pub(super) fn kind_at(&self, stage: usize) -> &Kind {
        let kinds = self.kinds.as_deref();
        &kinds.unwrap_or_else(|| self.job.pipeline.kinds())[stage]
    }

    /// Memory that the steps need in addition to the object, in bytes.
    pub(super) fn working_bytes(&self) -> u64 {
        let steps = self.peak_memory.map_or(0, |peak| peak.working_bytes);
        steps + self.crop_memory.unwrap_or_default()
    }

    /// Checks the limits for every value that the steps will compute from `object`.
    ///
    /// # Errors
    /// For a value or an answer above its limit; with `smallest`, and for a form of the object, also for a random step without a seed.
    pub(super) fn check(&self, object: &Kind) -> Result<()> {
        let Self { services, job, .. } = self;
        if job.split == Split::Smallest || job.form.is_some() {
            let steps = job.dependency_steps(self.stage);
            job.pipeline.check_randomness(steps, job.seed, job.epoch)?;
        }
        job.pipeline
            .check(0..self.stage, object, &services.sample_limits())?;
        services.check_output(self.peak_memory.map_or(0, |peak| peak.output_bytes))
    }
}

//! What follows from a pipeline and an object before a step runs. It is computed once, and carried to the answer.

use http::request::Parts;
use pushdown::{
    BytesKind, Kind, PeakMemory,
    wire::{Form, Split},
};

use super::{Services, http::AnswerForm, job::PipelineJob, request::PipelineRequest};
use crate::error::Result;

/// The value to answer with, as far as it is known in advance.
#[derive(Debug, Clone)]
pub(super) struct Prepared {
    /// The number of steps to run.
    pub(super) stage: usize,
    /// The kind of the value at this stage.
    pub(super) kind: Kind,
    /// The encoding of the value.
    pub(super) form: AnswerForm,
    /// Memory of the steps; `None` if it follows only from the whole object.
    pub(super) peak_memory: Option<PeakMemory>,
}

impl Prepared {
    /// What follows from the text of the pipeline; `None` if the split depends on the object.
    ///
    /// # Errors
    /// For a split beyond the pipeline, a random step without a seed, and a caller that accepts no form of the value.
    pub(super) fn from_text(parts: &Parts, job: &PipelineJob) -> Result<Option<Self>> {
        if job.split == Split::Smallest {
            return Ok(None);
        }
        let stage = job.pipeline.stage_of(job.split, &BytesKind::default())?;
        job.pipeline.check_randomness(stage, job.seed, job.epoch)?;
        Self::at_stage(parts, job, stage).map(Some)
    }

    /// Like [`from_text`](Self::from_text) at `stage`, whatever the split.
    ///
    /// # Errors
    /// For a caller that accepts no form of the value.
    pub(super) fn at_stage(parts: &Parts, job: &PipelineJob, stage: usize) -> Result<Self> {
        let kind = job.pipeline.kinds()[stage].clone();
        Ok(Self {
            stage,
            form: AnswerForm::negotiate(parts, job, stage, &kind)?,
            kind,
            peak_memory: None,
        })
    }

    /// What follows from the first bytes of the object.
    ///
    /// # Errors
    /// For an object that a step cannot process, and a caller that accepts no form of the value.
    pub(super) fn for_object(request: &PipelineRequest, object: &BytesKind) -> Result<Self> {
        let PipelineRequest {
            parts, job, known, ..
        } = request;
        let stage = match known {
            Some(known) => known.stage,
            None => job.pipeline.stage_of(job.split, object)?,
        };
        let object = Kind::Bytes(*object);
        let kind = job.pipeline.kinds_for(&object)?.swap_remove(stage);
        let form = match known {
            // Only the stored object has forms that depend on its bytes.
            Some(known) if stage > 0 => known.form,
            _ => AnswerForm::negotiate(parts, job, stage, &kind)?,
        };
        Ok(Self {
            stage,
            peak_memory: job.pipeline.peak_memory(0..stage, &object),
            kind,
            form,
        })
    }

    /// What follows from the first bytes of an object for a row of a batch. The stage is 0 if the value is known to be too
    /// large.
    ///
    /// # Errors
    /// For a split beyond the pipeline; with a limit on the value also for an object that a step cannot process.
    pub(super) fn for_row(job: &PipelineJob, object: &BytesKind) -> Result<Self> {
        let mut stage = job.pipeline.stage_of(job.split, object)?;
        let object = Kind::Bytes(*object);
        let mut kind = job.pipeline.kinds()[stage].clone();
        if job.max_bytes.is_some() {
            kind = job.pipeline.kinds_for(&object)?.swap_remove(stage);
            if kind.bytes().is_some_and(|bytes| job.is_too_large(bytes)) {
                (stage, kind) = (0, object.clone());
            }
        }
        Ok(Self {
            stage,
            kind,
            form: AnswerForm::Value(Form::ArrowStream),
            peak_memory: job.pipeline.peak_memory(0..stage, &object),
        })
    }

    /// The stored object instead of the value.
    pub(super) fn for_stored_object(&self, object: BytesKind) -> Self {
        Self {
            stage: 0,
            kind: Kind::Bytes(object),
            peak_memory: None,
            ..self.clone()
        }
    }

    /// The same, with the memory that follows from the whole object.
    pub(super) fn with_peak_memory(&self, job: &PipelineJob, object: &Kind) -> Self {
        Self {
            peak_memory: job.pipeline.peak_memory(0..self.stage, object),
            ..self.clone()
        }
    }

    /// Checks the limits for every value that the steps will compute from `object`.
    ///
    /// # Errors
    /// For a value or an answer above its limit; with `smallest` also for a random step without a seed.
    pub(super) fn check(&self, services: &Services, job: &PipelineJob, object: &Kind) -> Result<()> {
        if job.split == Split::Smallest {
            job.pipeline.check_randomness(self.stage, job.seed, job.epoch)?;
        }
        job.pipeline
            .check(0..self.stage, object, &services.sample_limits())?;
        services.check_output(self.peak_memory.map_or(0, |peak| peak.output_bytes))
    }
}

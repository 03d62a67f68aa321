//! One sample: opened on the caller's behalf, admitted to memory, and computed.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use pushdown::{BytesKind, Kind, Sample};
use tokio::time::Instant;

use super::object_head::ObjectHead;
use crate::{
    body::Body,
    compute::Permit,
    error::{Error, ErrorKind, Result},
    origin::{self, OriginObject, OriginRequest},
    routes::{Services, http::Timing, job::PipelineJob},
};

/// An object whose first bytes have been read. The rest is still at the store.
#[derive(Debug)]
pub(in crate::routes) struct OpenedSample {
    /// The store's answer without its body.
    pub(in crate::routes) headers: http::HeaderMap,
    /// Length of the object in bytes.
    pub(in crate::routes) length: u64,
    /// What is known of the object.
    pub(in crate::routes) kind: BytesKind,
    /// The stage to answer with.
    pub(in crate::routes) stage: usize,
    pub(in crate::routes) timing: Timing,
    head: ObjectHead,
    body: Body,
}

/// The store's answer.
#[derive(Debug)]
pub(in crate::routes) enum FetchedSample {
    Object(OpenedSample),
    /// Any status except 200. The store decides (law 6), and its answer is forwarded to the caller.
    Refused(OriginObject),
}

/// A sample with a memory reservation.
#[derive(Debug)]
pub(in crate::routes) struct AdmittedSample {
    opened: OpenedSample,
    permit: Permit,
    /// Whether the permit covers the work too. It covers only the source if the header was not in the first bytes.
    covers_work: bool,
}

/// The value at its stage, and the permit for its bytes.
#[derive(Debug)]
pub(in crate::routes) struct ComputedSample {
    pub(in crate::routes) stage: usize,
    pub(in crate::routes) sample: Sample,
    pub(in crate::routes) permit: Permit,
    pub(in crate::routes) timing: Timing,
    /// Time of the steps on the CPU pool.
    pub(in crate::routes) compute_time: Duration,
}

impl Services {
    /// Sends the caller's request, and reads the first bytes of the answer, to estimate the memory for the rest.
    pub(in crate::routes) async fn open(
        &self,
        request: OriginRequest,
        job: &PipelineJob,
    ) -> Result<FetchedSample> {
        let started = Instant::now();
        let object = self.origin.read(request).await?;
        if object.status != StatusCode::OK {
            return Ok(FetchedSample::Refused(object));
        }
        let length = self.check_length(&object)?;
        let mut body = object.body;
        let (head, header) = ObjectHead::read(&mut body).await?;
        let kind = BytesKind {
            length: Some(length),
            media: header.map(|header| header.media),
            header,
        };
        let stage = job.stage(&kind)?;
        let mut timing = Timing::default();
        timing.add("origin", started.elapsed());
        Ok(FetchedSample::Object(OpenedSample {
            headers: object.headers,
            length,
            kind,
            stage,
            timing,
            head,
            body,
        }))
    }

    /// Waits for the memory of source, pixels and output. Acquires all of it at once, so that no two samples wait for each
    /// other (deadlock). The rest of the object stays at the store during the wait.
    pub(in crate::routes) async fn admit(
        &self,
        mut opened: OpenedSample,
        job: &PipelineJob,
    ) -> Result<AdmittedSample> {
        let stage = opened.stage;
        let object = Kind::Bytes(opened.kind);
        job.pipeline.check_randomness(stage, job.seed, job.epoch)?;
        job.pipeline.check(0..stage, &object, &self.sample_limits())?;
        let peak = job.pipeline.peak_memory(0..stage, &object);
        self.check_output(peak.map_or(0, |peak| peak.output_bytes))?;
        let queued = Instant::now();
        let permit = self
            .memory
            .acquire(
                job.position.tenant(),
                opened.length + peak.map_or(0, |peak| peak.working_bytes),
            )
            .await?;
        opened.timing.add("queue", queued.elapsed());
        Ok(AdmittedSample {
            opened,
            permit,
            covers_work: peak.is_some(),
        })
    }

    /// Reads the rest of the object and runs the steps up to the stage.
    pub(in crate::routes) async fn compute(
        &self,
        admitted: AdmittedSample,
        job: &PipelineJob,
    ) -> Result<ComputedSample> {
        let AdmittedSample {
            opened,
            mut permit,
            covers_work,
        } = admitted;
        let limits = self.sample_limits();
        let (stage, mut timing) = (opened.stage, opened.timing.clone());
        let reading = Instant::now();
        let OpenedSample {
            length,
            head,
            mut body,
            ..
        } = opened;
        let source = origin::read_to_end(head.bytes(), &mut body, length).await?;
        drop(head);
        timing.add("read", reading.elapsed());
        if !covers_work {
            let object = Kind::of_object(Some(source.len() as u64), &source);
            job.pipeline.check(0..stage, &object, &limits)?;
            // Without a known header, decoding will fail, or the value is small.
            let unknown = pushdown::PeakMemory {
                working_bytes: source.len() as u64,
                output_bytes: 0,
            };
            let peak = job.pipeline.peak_memory(0..stage, &object).unwrap_or(unknown);
            self.check_output(peak.output_bytes)?;
            self.memory.grow(&mut permit, peak.working_bytes)?;
        }
        let fallback = job.max_bytes.is_some().then(|| source.clone());
        let (sample, steps) = self.run(source, job, stage, limits).await?;
        let (sample, stage) = match fallback.filter(|_| job.is_too_large(sample.bytes())) {
            Some(source) => (Sample::Bytes(source), 0),
            None => (sample, stage),
        };
        self.check_output(sample.bytes())?;
        permit.shrink_to(sample.bytes());
        let compute_time = steps.iter().map(|group| group.time).sum();
        for group in steps {
            // The time of a fused group counts for its first step.
            self.metrics.add_step_time(group.first, group.time);
            timing.add(group.name, group.time);
        }
        Ok(ComputedSample {
            stage,
            sample,
            permit,
            timing,
            compute_time,
        })
    }

    /// The length of an object.
    ///
    /// # Errors
    /// [`ErrorKind::OriginUnavailable`] without Content-Length; [`ErrorKind::EntityTooLarge`] above the limit.
    pub(in crate::routes) fn check_length(&self, object: &OriginObject) -> Result<u64> {
        let length = object.content_length.ok_or_else(|| {
            Error::new(
                ErrorKind::OriginUnavailable,
                "invalid answer of the store: expected Content-Length for a pipeline, found none",
            )
        })?;
        if length > self.limits.max_object_bytes {
            return Err(Error::new(
                ErrorKind::EntityTooLarge,
                format!(
                    "the object is too large: expected at most {} bytes, found {length}",
                    self.limits.max_object_bytes
                ),
            ));
        }
        Ok(length)
    }

    pub(in crate::routes) fn check_output(&self, bytes: u64) -> Result<()> {
        if bytes <= self.limits.max_output_bytes {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::EntityTooLarge,
            format!(
                "the answer is too large: expected at most {} bytes, found {bytes}",
                self.limits.max_output_bytes
            ),
        ))
    }
}

impl OpenedSample {
    /// The stored object: its first bytes, and the stream of the rest.
    pub(in crate::routes) fn into_stream(self) -> (Bytes, Body) {
        (self.head.into_bytes(), self.body)
    }
}

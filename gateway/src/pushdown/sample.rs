//! One sample: fetched on the caller's behalf, admitted, run.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use pushdown::{BytesKind, Kind, Sample};
use tokio::time::Instant;

use super::{Pushdown, head::Head, request::Job, timing::Timing};
use crate::{
    body::Body,
    compute::Permit,
    error::{Error, ErrorKind, Result},
    origin::{self, OriginObject, OriginRequest},
};

/// An object whose first bytes are here, and whose rest still waits at the store.
#[derive(Debug)]
pub(super) struct Opened {
    /// The store's answer without its body.
    pub(super) headers: http::HeaderMap,
    /// Length of the object in bytes.
    pub(super) length: u64,
    /// What is known of the object.
    pub(super) kind: BytesKind,
    /// The stage to answer with.
    pub(super) stage: usize,
    pub(super) timing: Timing,
    head: Head,
    body: Body,
}

/// What the store made of the request.
#[derive(Debug)]
pub(super) enum Fetched {
    Object(Opened),
    /// Anything but 200: the store decides (law 6), and its answer goes to the caller as it is.
    Refused(OriginObject),
}

/// An object for which there is memory.
#[derive(Debug)]
pub(super) struct Admitted {
    opened: Opened,
    permit: Permit,
    /// Whether the permit covers the work, or only the source, since the header lies beyond what was looked at.
    covered: bool,
}

/// A value at its stage, and the permit for its bytes.
#[derive(Debug)]
pub(super) struct Computed {
    pub(super) stage: usize,
    pub(super) sample: Sample,
    pub(super) permit: Permit,
    pub(super) timing: Timing,
    /// What the steps took of the CPU pool.
    pub(super) seconds: Duration,
}

impl Pushdown {
    /// Sends the caller's request and reads just enough of the answer to know what lies ahead.
    pub(super) async fn open(&self, request: OriginRequest, job: &Job) -> Result<Fetched> {
        let started = Instant::now();
        let object = self.origin.read(request).await?;
        if object.status != StatusCode::OK {
            return Ok(Fetched::Refused(object));
        }
        let length = self.check_length(&object)?;
        let mut body = object.body;
        let (head, header) = Head::read(&mut body).await?;
        let kind = BytesKind {
            length: Some(length),
            media: header.map(|header| header.media),
            header,
        };
        let stage = job.stage(&kind)?;
        let mut timing = Timing::default();
        timing.add("origin", started.elapsed());
        Ok(Fetched::Object(Opened {
            headers: object.headers,
            length,
            kind,
            stage,
            timing,
            head,
            body,
        }))
    }

    /// Waits for the memory that source, pixels and output take, all at once (so that no two samples wait for each
    /// other), with the rest of the object still at the store.
    pub(super) async fn admit(&self, mut opened: Opened, job: &Job) -> Result<Admitted> {
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
                job.standing.tenant(),
                opened.length + peak.map_or(0, |peak| peak.working_bytes),
            )
            .await?;
        opened.timing.add("queue", queued.elapsed());
        Ok(Admitted {
            opened,
            permit,
            covered: peak.is_some(),
        })
    }

    /// Reads the rest of the object and runs the steps up to the stage.
    pub(super) async fn compute(&self, admitted: Admitted, job: &Job) -> Result<Computed> {
        let Admitted {
            opened,
            mut permit,
            covered,
        } = admitted;
        let limits = self.sample_limits();
        let (stage, mut timing) = (opened.stage, opened.timing.clone());
        let reading = Instant::now();
        let Opened {
            length,
            head,
            mut body,
            ..
        } = opened;
        let source = origin::whole(head.bytes(), &mut body, length).await?;
        drop(head);
        timing.add("read", reading.elapsed());
        if !covered {
            let object = Kind::of_object(Some(source.len() as u64), &source);
            job.pipeline.check(0..stage, &object, &limits)?;
            // Bytes that tell nothing of what they decode to will fail to decode, or are small.
            let unknown = pushdown::PeakMemory {
                working_bytes: source.len() as u64,
                output_bytes: 0,
            };
            let peak = job.pipeline.peak_memory(0..stage, &object).unwrap_or(unknown);
            self.check_output(peak.output_bytes)?;
            self.memory.grow(&mut permit, peak.working_bytes)?;
        }
        let instead = job.max_bytes.is_some().then(|| source.clone());
        let (sample, steps) = self.run(source, job, stage, limits).await?;
        let (sample, stage) = match instead.filter(|_| job.is_too_large(sample.bytes())) {
            Some(source) => (Sample::Bytes(source), 0),
            None => (sample, stage),
        };
        self.check_output(sample.bytes())?;
        permit.shrink_to(sample.bytes());
        let seconds = steps.iter().map(|group| group.time).sum();
        for group in steps {
            // A fused group counts as its first step.
            self.metrics.step(group.first, group.time);
            timing.add(group.name, group.time);
        }
        Ok(Computed {
            stage,
            sample,
            permit,
            timing,
            seconds,
        })
    }

    /// The length of an object, which is within the limit.
    pub(super) fn check_length(&self, object: &OriginObject) -> Result<u64> {
        let length = object.content_length.ok_or_else(|| {
            Error::new(
                ErrorKind::OriginUnavailable,
                "the store answered without Content-Length: a pipeline needs it",
            )
        })?;
        if length > self.limits.max_object_bytes {
            return Err(Error::new(
                ErrorKind::EntityTooLarge,
                format!(
                    "the object has {length} bytes, more than the limit of {}",
                    self.limits.max_object_bytes
                ),
            ));
        }
        Ok(length)
    }

    pub(super) fn check_output(&self, bytes: u64) -> Result<()> {
        if bytes <= self.limits.max_output_bytes {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::EntityTooLarge,
            format!(
                "the answer has {bytes} bytes, more than the limit of {}",
                self.limits.max_output_bytes
            ),
        ))
    }
}

impl Opened {
    /// The object as it is stored, streamed: what is here, then what the store still sends.
    pub(super) fn into_stream(self) -> (Bytes, Body) {
        (self.head.into_bytes(), self.body)
    }
}

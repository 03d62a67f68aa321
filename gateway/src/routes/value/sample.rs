//! One sample: opened on the caller's behalf, admitted to memory, and read.

use bytes::Bytes;
use http::StatusCode;
use pushdown::{BytesKind, Kind};
use tokio::time::Instant;

use super::object_head::ObjectHead;
use crate::{
    body::Body,
    compute::Permit,
    error::Result,
    origin::{self, OriginObject, OriginRequest},
    routes::{Services, http::Timing, job::PipelineJob, prepared::Prepared},
};

/// An object whose first bytes have been read. The rest is still at the store.
#[derive(Debug)]
pub(in crate::routes) struct OpenedSample {
    /// The store's answer without its body.
    pub(in crate::routes) headers: http::HeaderMap,
    /// Length of the object in bytes.
    pub(in crate::routes) length: u64,
    /// What its first bytes show.
    pub(in crate::routes) kind: BytesKind,
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
    /// Covers only the source if the memory of the steps was unknown: the header was not in the first bytes.
    permit: Permit,
}

impl FetchedSample {
    /// Sends the caller's request, and reads the first bytes of the answer, to estimate the memory for the rest.
    pub(in crate::routes) async fn fetch(services: &Services, request: OriginRequest) -> Result<Self> {
        let started = Instant::now();
        let object = services.origin.read(request).await?;
        if object.status != StatusCode::OK {
            return Ok(Self::Refused(object));
        }
        let length = services.check_length(&object)?;
        let mut body = object.body;
        let (head, header) = ObjectHead::read(&mut body).await?;
        let kind = BytesKind {
            length: Some(length),
            media: header.map(|header| header.media),
            header,
        };
        let mut timing = Timing::default();
        timing.add("origin", started.elapsed());
        Ok(Self::Object(OpenedSample {
            headers: object.headers,
            length,
            kind,
            timing,
            head,
            body,
        }))
    }
}

impl OpenedSample {
    /// Waits for the memory of source, pixels and output. Acquires all of it at once, so that no two samples wait for each
    /// other (deadlock). The rest of the object stays at the store during the wait.
    pub(in crate::routes) async fn admit(
        mut self,
        services: &Services,
        job: &PipelineJob,
        prepared: &Prepared,
    ) -> Result<AdmittedSample> {
        prepared.check(services, job, &Kind::Bytes(self.kind))?;
        let queued = Instant::now();
        let bytes = self.length + prepared.peak_memory.map_or(0, |peak| peak.working_bytes);
        let permit = services.memory.acquire(job.position.tenant(), bytes).await?;
        self.timing.add("queue", queued.elapsed());
        Ok(AdmittedSample { opened: self, permit })
    }

    /// The stored object: its first bytes, and the stream of the rest.
    pub(in crate::routes) fn into_stream(self) -> (Bytes, Body) {
        (self.head.into_bytes(), self.body)
    }
}

impl AdmittedSample {
    /// Reads the rest of the object. Returns it with the permit for its bytes and those of the steps, and with the times so
    /// far.
    pub(super) async fn read(
        self,
        services: &Services,
        job: &PipelineJob,
        prepared: &Prepared,
    ) -> Result<(Bytes, Permit, Timing)> {
        let Self { opened, mut permit } = self;
        let OpenedSample {
            length,
            mut timing,
            head,
            mut body,
            ..
        } = opened;
        let reading = Instant::now();
        let source = origin::read_to_end(head.bytes(), &mut body, length).await?;
        drop(head);
        timing.add("read", reading.elapsed());
        if prepared.peak_memory.is_none() {
            let object = Kind::of_object(Some(source.len() as u64), &source);
            let prepared = prepared.with_peak_memory(job, &object);
            prepared.check(services, job, &object)?;
            // Without a known header, decoding will fail, or the value is small.
            let bytes = prepared
                .peak_memory
                .map_or(source.len() as u64, |peak| peak.working_bytes);
            services.memory.grow(&mut permit, bytes)?;
        }
        Ok((source, permit, timing))
    }
}

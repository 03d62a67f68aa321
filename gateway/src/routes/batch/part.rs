//! A batch whose values become one object of a store: a part of a data set.
//!
//! A part is held in memory until it is complete, so that the store gets its length and its MD5 before its first byte, and none of a part
//! that fails. Two parts are made at a time, each with at most a third of the memory budget: rows that are computed for them still find memory.

mod maker;
mod upload;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header, request::Parts};
use pushdown::{
    part::PartSpec,
    wire::{PART_EVENTS_TYPE, PartEvent},
};
use tokio::{
    sync::{Semaphore, watch},
    time::{Instant, timeout, timeout_at},
};
use tokio_util::task::AbortOnDropHandle;

use super::Batch;
use crate::{
    body::Body,
    compute::Memory,
    engine,
    error::{Error, ErrorKind, Result},
    routes::http::{insert_engine, insert_warnings, respond, stream_body},
};
use maker::PartMaker;

/// Parts that are made at a time.
const MAX_PARTS: usize = 2;
/// How often a caller hears of a part that is being made.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Answers a batch request for a part.
#[derive(Debug, Clone)]
pub(super) struct BatchPartRoute {
    slots: Arc<Semaphore>,
}

/// The most bytes of a part: its buffer may be twice as large.
pub(in crate::routes) const fn max_part_bytes(memory: &Memory) -> u64 {
    memory.total_bytes() / 8
}

impl BatchPartRoute {
    pub(super) fn new() -> Self {
        Self {
            slots: Arc::new(Semaphore::new(MAX_PARTS)),
        }
    }

    /// Answers with a line for each event, until the part is written or refused. A caller that leaves ends it, and then the store gets
    /// nothing.
    ///
    /// # Errors
    /// [`ErrorKind::SlowDown`] if others are made for too long; [`ErrorKind::InvalidRequest`] for keys that are no names of samples; those
    /// of the target.
    pub(super) async fn answer(
        &self,
        parts: &Parts,
        batch: Arc<Batch>,
        spec: PartSpec,
    ) -> Result<Response<Body>> {
        let services = Arc::clone(&batch.services);
        let engine = engine::stated(batch.pipeline.steps());
        check_engine(&batch, &engine.to_string())?;
        let upload = batch.part_upload()?;
        let maker = PartMaker::new(Arc::clone(&batch), spec)?;
        let wait = timeout(
            services.limits.queue_wait,
            Arc::clone(&self.slots).acquire_owned(),
        );
        let Ok(Ok(slot)) = wait.await else {
            return Err(Error::new(
                ErrorKind::SlowDown,
                format!("the gateway makes {MAX_PARTS} other parts of data sets"),
            ));
        };
        let mut headers = HeaderMap::new();
        insert_warnings(&mut headers, &batch.pipeline);
        insert_engine(&mut headers, &engine);
        services.insert_cores(&mut headers);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PART_EVENTS_TYPE));
        headers.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("private, no-store"),
        );
        let guard = services.stall_guard(parts);
        let (progress, samples) = watch::channel(0);
        let task = tokio::spawn(async move {
            let _slot = slot;
            match maker.make(upload, &progress).await {
                Ok(written) => PartEvent::Written(written),
                Err(refused) => PartEvent::Refused(refused),
            }
        });
        let events = Events {
            task: AbortOnDropHandle::new(task),
            samples,
        };
        let rest = stream::try_unfold(Some((events, guard)), |open| async {
            let Some((mut events, guard)) = open else {
                return Ok(None);
            };
            let (event, is_last) = events.next().await?;
            Ok(Some((vec![line(&event)?], (!is_last).then_some((events, guard)))))
        });
        let first = line(&PartEvent::Progress { samples: 0 })?;
        Ok(respond(StatusCode::OK, headers, stream_body(vec![first], rest)))
    }
}

/// Checks that the values are those that the caller expects.
fn check_engine(batch: &Batch, engine: &str) -> Result<()> {
    let expected = batch
        .request
        .part
        .as_ref()
        .and_then(|part| part.engine.as_deref());
    match expected {
        Some(expected) if expected != engine => Err(Error::new(
            ErrorKind::PreconditionFailed,
            format!("this gateway computes other values: expected engine `{expected}`, found `{engine}`"),
        )),
        _ => Ok(()),
    }
}

/// What happens to a part.
struct Events {
    task: AbortOnDropHandle<PartEvent>,
    /// Samples that are done.
    samples: watch::Receiver<u32>,
}

impl Events {
    /// The next event, and whether it is the last one.
    async fn next(&mut self) -> Result<(PartEvent, bool)> {
        let deadline = Instant::now() + PROGRESS_INTERVAL;
        match timeout_at(deadline, &mut self.task).await {
            Ok(Ok(event)) => Ok((event, true)),
            Ok(Err(panic)) => {
                Err(Error::new(ErrorKind::Internal, "the task of a part panicked").with_source(panic))
            }
            Err(_elapsed) => {
                let samples = *self.samples.borrow_and_update();
                Ok((PartEvent::Progress { samples }, false))
            }
        }
    }
}

fn line(event: &PartEvent) -> Result<Bytes> {
    let mut line = serde_json::to_vec(event).map_err(|error| {
        Error::new(ErrorKind::Internal, "cannot write an event of a part").with_source(error)
    })?;
    line.push(b'\n');
    Ok(line.into())
}

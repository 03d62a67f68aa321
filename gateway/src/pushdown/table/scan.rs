//! A scan of one object: opened, admitted, and its rows as pieces of an answer.

use std::{sync::Arc, time::Duration};

use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::StreamExt as _;
use http::HeaderMap;
use pushdown::{
    Context, Estimate, Scan, Source, Step,
    limits::{BATCH_BYTES, BATCH_ROWS, EACH_BYTES},
    wire::{TableEncoder, TableForm},
};
use tokio::time::Instant;

use super::source::{Fault, Footer, Ranged};
use crate::{
    compute::{Permit, Turns},
    error::{Error, ErrorKind, Result},
    origin::{self, End, OriginObject, OriginRequest},
    pushdown::{Pushdown, request::Job, timing::Timing},
};

/// Bytes at the end of an object that are read first: most footers fit, and small objects are read whole.
const END_BYTES: u64 = 64 * 1024;
/// What a scan may hold before its plan is made: the object's end, and what it says.
const OPENING_BYTES: u64 = 256 * 1024;
/// What a scan is taken to hold of an object that tells nothing beforehand: pieces of a stream, and what inflates them.
const STREAM_BYTES: u64 = 8 << 20;
/// What comes on top where the object has as much: a record batch of 16 MiB as text, and the one that is made of it.
const TEXT_BYTES: u64 = 32 << 20;
/// How many times its size such an object is taken to have, once it is inflated.
const INFLATED: u64 = 16;
/// What record batches are taken to have where nothing is known of them.
const UNKNOWN_BYTES: u64 = 1 << 20;
/// Record batches that are there at a time: one in the making, those that lie ready, and one on its way.
pub(in crate::pushdown) const BATCHES: usize = 4;

/// An object whose end is at hand, and nothing computed yet.
#[derive(Debug)]
pub(in crate::pushdown) struct Found {
    /// The store's headers.
    pub(super) headers: HeaderMap,
    pub(super) timing: Timing,
    end: End,
}

/// How an object is read, and the memory for what is read until the plan is made.
enum Reading {
    Parts(Footer),
    Whole(Permit),
}

/// A scan whose plan is made.
#[derive(Debug)]
pub(in crate::pushdown) struct Planned {
    scan: Scan,
    turns: Turns,
    fault: Fault,
    /// What the object's footer takes, or all of it.
    held: Permit,
    /// What was asked of the store until now.
    asked: u64,
    pub(super) timing: Timing,
}

/// A scan for which there is memory.
#[derive(Debug)]
pub(in crate::pushdown) struct Admitted {
    pub(in crate::pushdown) scan: Scan,
    pub(in crate::pushdown) turns: Turns,
    pub(in crate::pushdown) fault: Fault,
    /// What the object's footer takes, or all of it.
    pub(in crate::pushdown) held: Permit,
    /// What scanning takes.
    pub(in crate::pushdown) permit: Permit,
    pub(in crate::pushdown) timing: Timing,
}

/// The rows of a scan as pieces of an answer.
#[derive(Debug)]
pub(super) struct Rows {
    turns: Turns,
    fault: Fault,
    /// `None` behind the last row.
    next: Option<(Scan, TableEncoder)>,
}

impl Pushdown {
    /// Reads the end of an object on the caller's behalf; or what the store refused.
    pub(in crate::pushdown) async fn find(
        &self,
        request: OriginRequest,
    ) -> Result<Result<Found, OriginObject>> {
        let started = Instant::now();
        let end = match self.origin.end(request, END_BYTES).await? {
            Ok(end) => end,
            Err(refused) => return Ok(Err(refused)),
        };
        let headers = match &end {
            End::Part(part) => part.headers.clone(),
            End::Whole(object) => object.headers.clone(),
        };
        let mut timing = Timing::default();
        timing.add("origin", started.elapsed());
        Ok(Ok(Found { headers, timing, end }))
    }

    /// Reads what the object is, and plans the scan.
    pub(in crate::pushdown) async fn plan(&self, found: Found, job: &Job) -> Result<Planned> {
        let Found { end, mut timing, .. } = found;
        let started = Instant::now();
        let fault = Fault::default();
        let mut turns = Turns::new(self.cpu.clone(), job.standing.tenant().clone())?;
        let (source, reading): (Arc<dyn Source>, Reading) = match end {
            End::Part(part) => {
                let permit = self.memory.acquire(job.standing.tenant(), OPENING_BYTES).await?;
                let footer = Footer::new(self.memory.clone(), permit);
                let ranged = Ranged::new(*part, footer.clone(), turns.awake(), fault.clone());
                (Arc::new(ranged), Reading::Parts(footer))
            }
            End::Whole(object) => {
                let (bytes, permit) = self.read_whole(object, job).await?;
                (Arc::new(bytes), Reading::Whole(permit))
            }
        };
        let no_rows = || Error::new(ErrorKind::Internal, "the prefix makes no rows of an object");
        let stretch = 0..job.scan().ok_or_else(no_rows)?;
        let (pipeline, sample_id) = (Arc::clone(&job.pipeline), job.sample_id.clone());
        let (seed, epoch, limits) = (job.seed, job.epoch, self.sample_limits());
        let planning = async move {
            let context = Context {
                seed,
                epoch,
                limits,
                ..Context::new(&sample_id)
            };
            pipeline.scan(stretch, source, &context).await
        };
        let scan = turns.run(planning).await?.map_err(|error| fault.of(error))?;
        let (asked, held) = match reading {
            Reading::Parts(footer) => footer.end()?,
            Reading::Whole(permit) => (scan.estimate().object_bytes, permit),
        };
        timing.add("plan", started.elapsed());
        Ok(Planned {
            scan,
            turns,
            fault,
            held,
            asked,
            timing,
        })
    }

    /// Waits for the memory that the scan will take, all at once, and `more`.
    pub(in crate::pushdown) async fn admit_scan(
        &self,
        planned: Planned,
        job: &Job,
        more: u64,
    ) -> Result<Admitted> {
        let Planned {
            scan,
            turns,
            fault,
            held,
            mut timing,
            ..
        } = planned;
        let queued = Instant::now();
        let query = self.sample_limits().tables.max_query_bytes;
        let steps = &job.pipeline.steps()[..job.scan().unwrap_or_default()];
        let bytes = working(scan.estimate(), steps, query).saturating_add(more);
        let permit = self.memory.acquire(job.standing.tenant(), bytes).await?;
        timing.add("queue", queued.elapsed());
        Ok(Admitted {
            scan,
            turns,
            fault,
            held,
            permit,
            timing,
        })
    }

    /// All of an object that the store gives no parts of.
    async fn read_whole(&self, mut object: OriginObject, job: &Job) -> Result<(Bytes, Permit)> {
        let length = self.check_length(&object)?;
        let permit = self.memory.acquire(job.standing.tenant(), length).await?;
        let bytes = origin::whole(&[], &mut object.body, length).await?;
        Ok((bytes, permit))
    }
}

/// What a scan holds at once, its source apart: a row group as it is stored, record batches, and what grouping and joining
/// take. What sorting takes is part of the estimate.
fn working(estimate: &Estimate, steps: &[Step], query: u64) -> u64 {
    let batch = match (estimate.output_bytes, estimate.max_rows) {
        (Some(bytes), Some(rows)) => {
            let rows = rows.max(1);
            (bytes / rows)
                .saturating_mul(rows.min(BATCH_ROWS as u64))
                .min(BATCH_BYTES)
        }
        _ => UNKNOWN_BYTES,
    };
    let each = steps.iter().any(|step| matches!(step, Step::Each(_)));
    let (batch, values) = if each {
        // An image in the making is not counted.
        (batch.min(EACH_BYTES as u64), EACH_BYTES as u64)
    } else {
        (batch, 0)
    };
    let computing = match (steps.first(), estimate.output_bytes) {
        (Some(Step::Sql(_)), None) => query,
        _ => 0,
    };
    let streamed = || STREAM_BYTES + TEXT_BYTES.min(estimate.object_bytes.saturating_mul(INFLATED));
    estimate
        .peak_memory_bytes
        .unwrap_or_else(streamed)
        .saturating_add(batch.saturating_add(values).saturating_mul(BATCHES as u64))
        .saturating_add(computing)
}

// === impl Planned ===

impl Planned {
    /// The columns.
    pub(in crate::pushdown) const fn schema(&self) -> &SchemaRef {
        self.scan.schema()
    }

    /// What the scan will read and give.
    pub(in crate::pushdown) const fn estimate(&self) -> &Estimate {
        self.scan.estimate()
    }

    /// Bytes of the object that are read, what was read for the plan among them.
    pub(in crate::pushdown) fn source_bytes(&self) -> u64 {
        let Estimate {
            object_bytes,
            scan_bytes,
            ..
        } = *self.estimate();
        let scan_bytes = scan_bytes.unwrap_or(object_bytes);
        self.asked.saturating_add(scan_bytes).min(object_bytes)
    }
}

// === impl Rows ===

impl Rows {
    /// The rows of a scan in a form.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::error::ErrorKind) for columns that the form cannot hold.
    pub(super) fn new(scan: Scan, turns: Turns, fault: Fault, form: TableForm) -> Result<Self> {
        let encoder = TableEncoder::new(form, scan.schema())?;
        Ok(Self {
            turns,
            fault,
            next: Some((scan, encoder)),
        })
    }

    /// The next pieces, of a record batch or more; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Bytes>>> {
        let Some((mut scan, mut encoder)) = self.next.take() else {
            return Ok(None);
        };
        let writing = async move {
            loop {
                let Some(batch) = scan.next().await.transpose()? else {
                    return Ok((encoder.finish()?, None));
                };
                let pieces = encoder.write(&batch)?;
                if !pieces.is_empty() {
                    return Ok((pieces, Some((scan, encoder))));
                }
            }
        };
        let (pieces, next) = self
            .turns
            .run(writing)
            .await?
            .map_err(|error| self.fault.of(error))?;
        self.next = next;
        Ok(Some(pieces))
    }

    /// What the rows so far took of the CPU pool.
    pub(super) const fn spent(&self) -> Duration {
        self.turns.spent()
    }
}

#[cfg(test)]
mod tests {
    use pushdown::Pipeline;

    use super::*;

    #[test]
    fn a_stream_is_taken_to_hold_its_text_and_its_rows() {
        let select: Pipeline = "select()".parse().unwrap();
        let sql: Pipeline = "sql('select 1 from object')".parse().unwrap();
        let of = |stored, pipeline: &Pipeline| {
            let estimate = Estimate {
                object_bytes: stored,
                ..Estimate::default()
            };
            working(&estimate, pipeline.steps(), 256 << 20)
        };
        let batches = BATCHES as u64 * UNKNOWN_BYTES;
        assert_eq!(of(0, &select), STREAM_BYTES + batches);
        assert_eq!(of(1 << 20, &select), STREAM_BYTES + (16 << 20) + batches);
        assert_eq!(of(1 << 40, &select), STREAM_BYTES + TEXT_BYTES + batches);
        assert_eq!(of(0, &sql), STREAM_BYTES + batches + (256 << 20));
    }

    /// Tensors of 602 KB: 8,192 of them are never in memory together.
    #[test]
    fn record_batches_of_large_values_are_taken_to_have_few_rows() {
        let select: Pipeline = "select".parse().unwrap();
        let each: Pipeline = "select | each(photo: decode | resize(224, 224) | to_float)"
            .parse()
            .unwrap();
        let estimate = Estimate {
            max_rows: Some(100_000),
            output_bytes: Some(100_000 * 602_112),
            peak_memory_bytes: Some(1000),
            ..Estimate::default()
        };
        let of = |pipeline: &Pipeline| working(&estimate, pipeline.steps(), 0) - 1000;
        assert_eq!(of(&select), BATCHES as u64 * BATCH_BYTES);
        assert_eq!(of(&each), BATCHES as u64 * 2 * EACH_BYTES as u64);
    }
}

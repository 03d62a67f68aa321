//! The scan of one object: open, plan, admit, and encode its rows.

use std::{sync::Arc, time::Duration};

use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::StreamExt as _;
use http::HeaderMap;
use pushdown::{
    Context, Estimate, Scan, Source, Step,
    limits::{BATCH_BYTES, BATCH_ROWS},
    step::RowwiseStep,
    wire::{TableEncoder, TableForm},
};
use tokio::time::Instant;

use super::source::{FooterMemory, RangedSource};
use crate::{
    compute::{CooperativeTask, Permit},
    error::{Error, ErrorKind, Result},
    origin::{self, FetchedTail, ObjectTail, OriginObject, OriginRequest},
    routes::{Services, http::Timing, job::PipelineJob},
};

/// Bytes at the end of an object that are read first: most footers fit, and small objects are read as a whole.
const TAIL_BYTES: u64 = 64 * 1024;
/// Memory of a scan before it is planned: the object's end, and the parsed footer.
const OPENING_BYTES: u64 = 256 * 1024;
/// Memory of a streamed object without an estimate: pieces of the stream, and the decompressor.
const STREAM_BYTES: u64 = 8 << 20;
/// Additional memory of such an object, if it is large enough: 16 MiB of text, and the record batch that is parsed from it.
const TEXT_BYTES: u64 = 32 << 20;
/// Assumed ratio of the inflated size of such an object to its stored size.
const INFLATION_RATIO: u64 = 16;
/// Assumed size of a record batch without an estimate.
const UNKNOWN_BATCH_BYTES: u64 = 1 << 20;
/// Record batches in memory at a time: one that is computed, those that are ready, and one that is being sent.
pub(in crate::routes) const LIVE_BATCHES: usize = 4;

/// The store's answer to the request for a table.
#[derive(Debug)]
pub(in crate::routes) enum FetchedTable {
    Table(OpenedTable),
    /// Any status except 200 and 206: the store's answer to the caller.
    Refused(OriginObject),
}

/// An object whose end has been read. Nothing is computed yet.
#[derive(Debug)]
pub(in crate::routes) struct OpenedTable {
    /// The store's headers.
    pub(super) headers: HeaderMap,
    pub(super) timing: Timing,
    tail: ObjectTail,
}

/// The memory for the parts of the source that are read before the scan is planned.
enum SourceMemory {
    Footer(FooterMemory),
    Whole(Permit),
}

/// A planned scan.
#[derive(Debug)]
pub(in crate::routes) struct PlannedScan {
    scan: Scan,
    task: CooperativeTask,
    /// Memory of the object's footer, or of the whole object.
    source_permit: Permit,
    /// Bytes that were requested from the store so far.
    requested_bytes: u64,
    pub(super) timing: Timing,
}

/// A scan with a memory reservation.
#[derive(Debug)]
pub(in crate::routes) struct AdmittedScan {
    pub(in crate::routes) scan: Scan,
    pub(in crate::routes) task: CooperativeTask,
    /// Memory of the object's footer, or of the whole object.
    pub(in crate::routes) source_permit: Permit,
    /// Memory of the scan.
    pub(in crate::routes) permit: Permit,
    pub(in crate::routes) timing: Timing,
}

/// The encoded rows of a scan.
#[derive(Debug)]
pub(super) struct EncodedRows {
    task: CooperativeTask,
    /// `None` after the last row.
    next: Option<(Scan, TableEncoder)>,
}

impl Services {
    /// Reads the end of an object on the caller's behalf.
    pub(in crate::routes) async fn open_table(&self, request: OriginRequest) -> Result<FetchedTable> {
        let started = Instant::now();
        let tail = match self.origin.read_tail(request, TAIL_BYTES).await? {
            FetchedTail::Tail(tail) => tail,
            FetchedTail::Refused(answer) => return Ok(FetchedTable::Refused(answer)),
        };
        let headers = match &tail {
            ObjectTail::Part(part) => part.headers.clone(),
            ObjectTail::Whole(object) => object.headers.clone(),
        };
        let mut timing = Timing::default();
        timing.add("origin", started.elapsed());
        Ok(FetchedTable::Table(OpenedTable {
            headers,
            timing,
            tail,
        }))
    }

    /// Reads the object's schema, and plans the scan.
    pub(in crate::routes) async fn plan(&self, table: OpenedTable, job: &PipelineJob) -> Result<PlannedScan> {
        let OpenedTable { tail, mut timing, .. } = table;
        let started = Instant::now();
        let mut task = CooperativeTask::new(self.cpu.clone(), job.position.tenant().clone())?;
        let (source, memory): (Arc<dyn Source>, SourceMemory) = match tail {
            ObjectTail::Part(part) => {
                let permit = self.memory.acquire(job.position.tenant(), OPENING_BYTES).await?;
                let footer = FooterMemory::new(self.memory.clone(), permit);
                let ranged = RangedSource::new(*part, footer.clone(), task.waker());
                (Arc::new(ranged), SourceMemory::Footer(footer))
            }
            ObjectTail::Whole(object) => {
                let (bytes, permit) = self.read_whole(object, job).await?;
                (Arc::new(bytes), SourceMemory::Whole(permit))
            }
        };
        let not_a_scan = || Error::new(ErrorKind::Internal, "the prefix is not a table scan");
        let prefix = 0..job.scan_stage().ok_or_else(not_a_scan)?;
        let (pipeline, sample_id) = (Arc::clone(&job.pipeline), job.sample_id.clone());
        let (seed, epoch, limits) = (job.seed, job.epoch, self.sample_limits());
        let planning = async move {
            let context = Context {
                seed,
                epoch,
                limits,
                ..Context::new(&sample_id)
            };
            pipeline.scan(prefix, source, &context).await
        };
        let scan = task.run(planning).await??;
        let (requested_bytes, source_permit) = match memory {
            SourceMemory::Footer(footer) => footer.finish()?,
            SourceMemory::Whole(permit) => (scan.estimate().object_bytes, permit),
        };
        timing.add("plan", started.elapsed());
        Ok(PlannedScan {
            scan,
            task,
            source_permit,
            requested_bytes,
            timing,
        })
    }

    /// Waits for the memory of the scan and `additional_bytes`, all at once.
    pub(in crate::routes) async fn admit_scan(
        &self,
        planned: PlannedScan,
        job: &PipelineJob,
        additional_bytes: u64,
    ) -> Result<AdmittedScan> {
        let PlannedScan {
            scan,
            task,
            source_permit,
            mut timing,
            ..
        } = planned;
        let queued = Instant::now();
        let max_query_bytes = self.sample_limits().tables.max_query_bytes;
        let steps = &job.pipeline.steps()[..job.scan_stage().unwrap_or_default()];
        let bytes = working_bytes(scan.estimate(), steps, max_query_bytes).saturating_add(additional_bytes);
        let permit = self.memory.acquire(job.position.tenant(), bytes).await?;
        timing.add("queue", queued.elapsed());
        Ok(AdmittedScan {
            scan,
            task,
            source_permit,
            permit,
            timing,
        })
    }

    /// Reads a whole object, of a store that does not support ranges.
    async fn read_whole(&self, mut object: OriginObject, job: &PipelineJob) -> Result<(Bytes, Permit)> {
        let length = self.check_length(&object)?;
        let permit = self.memory.acquire(job.position.tenant(), length).await?;
        let bytes = origin::read_to_end(&[], &mut object.body, length).await?;
        Ok((bytes, permit))
    }
}

/// Memory of a scan without its source: a stored row group, record batches, and the state of grouping and joins
/// (`max_query_bytes`). The memory of sorting is part of the estimate.
fn working_bytes(estimate: &Estimate, steps: &[Step], max_query_bytes: u64) -> u64 {
    let batch = match (estimate.output_bytes, estimate.max_rows) {
        (Some(bytes), Some(rows)) => {
            let rows = rows.max(1);
            (bytes / rows)
                .saturating_mul(rows.min(BATCH_ROWS as u64))
                .min(BATCH_BYTES)
        }
        _ => UNKNOWN_BATCH_BYTES,
    };
    let computed = steps
        .iter()
        .filter_map(Step::rowwise)
        .map(RowwiseStep::computed_bytes);
    let values = computed.max().unwrap_or_default();
    // Batches of computed values are cut at that size.
    let batch = if values > 0 { batch.min(values) } else { batch };
    let reader = steps.first().and_then(Step::table_reader);
    let is_any_query = reader.is_some_and(|reader| reader.row_selection().is_none());
    let computing = if is_any_query && estimate.output_bytes.is_none() {
        max_query_bytes
    } else {
        0
    };
    let streamed = || STREAM_BYTES + TEXT_BYTES.min(estimate.object_bytes.saturating_mul(INFLATION_RATIO));
    estimate
        .peak_memory_bytes
        .unwrap_or_else(streamed)
        .saturating_add(batch.saturating_add(values).saturating_mul(LIVE_BATCHES as u64))
        .saturating_add(computing)
}

// === impl PlannedScan ===

impl PlannedScan {
    /// The columns.
    pub(in crate::routes) const fn schema(&self) -> &SchemaRef {
        self.scan.schema()
    }

    /// The estimate of what the scan reads and returns.
    pub(in crate::routes) const fn estimate(&self) -> &Estimate {
        self.scan.estimate()
    }

    /// Bytes of the object that are read, including those read for the plan.
    pub(in crate::routes) fn source_bytes(&self) -> u64 {
        let Estimate {
            object_bytes,
            scan_bytes,
            ..
        } = *self.estimate();
        self.requested_bytes
            .saturating_add(scan_bytes.unwrap_or(object_bytes))
            .min(object_bytes)
    }
}

// === impl EncodedRows ===

impl EncodedRows {
    /// The rows of a scan, encoded in `form`.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::error::ErrorKind) for columns that the form cannot encode.
    pub(super) fn new(scan: Scan, task: CooperativeTask, form: TableForm) -> Result<Self> {
        let encoder = TableEncoder::new(form, scan.schema())?;
        Ok(Self {
            task,
            next: Some((scan, encoder)),
        })
    }

    /// The next pieces, of one or more record batches; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Bytes>>> {
        let Some((mut scan, mut encoder)) = self.next.take() else {
            return Ok(None);
        };
        let encoding = async move {
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
        let encoded: pushdown::Result<_> = self.task.run(encoding).await?;
        let (pieces, next) = encoded?;
        self.next = next;
        Ok(Some(pieces))
    }

    /// Time of the rows so far on the CPU pool.
    pub(super) const fn compute_time(&self) -> Duration {
        self.task.compute_time()
    }
}

#[cfg(test)]
mod tests {
    use pushdown::{Pipeline, limits::EACH_BYTES};

    use super::*;

    #[test]
    fn a_stream_reserves_memory_for_its_text_and_its_rows() {
        let select: Pipeline = "select()".parse().unwrap();
        let sql: Pipeline = "sql('select 1 from object')".parse().unwrap();
        let bytes = |stored, pipeline: &Pipeline| {
            let estimate = Estimate {
                object_bytes: stored,
                ..Estimate::default()
            };
            working_bytes(&estimate, pipeline.steps(), 256 << 20)
        };
        let batches = LIVE_BATCHES as u64 * UNKNOWN_BATCH_BYTES;
        assert_eq!(bytes(0, &select), STREAM_BYTES + batches);
        assert_eq!(bytes(1 << 20, &select), STREAM_BYTES + (16 << 20) + batches);
        assert_eq!(bytes(1 << 40, &select), STREAM_BYTES + TEXT_BYTES + batches);
        assert_eq!(bytes(0, &sql), STREAM_BYTES + batches + (256 << 20));
    }

    /// 8,192 tensors of 602 KB are never in memory together.
    #[test]
    fn record_batches_of_large_values_have_few_rows() {
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
        let bytes = |pipeline: &Pipeline| working_bytes(&estimate, pipeline.steps(), 0) - 1000;
        assert_eq!(bytes(&select), LIVE_BATCHES as u64 * BATCH_BYTES);
        assert_eq!(bytes(&each), LIVE_BATCHES as u64 * 2 * EACH_BYTES as u64);
    }
}

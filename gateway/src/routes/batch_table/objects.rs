//! The objects of a combined table. First all schemas are read, then a task per object reads its rows.

use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use futures::{StreamExt as _, stream};
use pushdown::{
    MergeRule, Pipeline, SchemaMerger, Step,
    limits::BATCH_ROWS,
    wire::{Compression, TableForm},
};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::{
    compute::Permit,
    error::{Error, ErrorKind, Result},
    origin::OriginRequest,
    routes::{
        batch::{AdmissionTicket, Batch},
        http::StoreRefusal,
        job::PipelineJob,
        table::{FetchedTable, LIVE_BATCHES, OpenedTable, PlannedScan},
    },
};

/// Record batches of an object that are computed ahead.
const PREFETCHED_BATCHES: usize = 1;

/// State that all objects of a request share.
pub(super) struct TableObjects {
    batch: Arc<Batch>,
    /// The request for each object, once it was decided on. Each object is read twice: for its schema, and for its rows.
    requests: Vec<OnceLock<OriginRequest>>,
}

/// A message of an object's task.
pub(super) enum ObjectRows {
    Batch(RecordBatch),
    /// The object has no more rows.
    End(Box<FinishedObject>),
}

/// The resources of an object whose rows are complete. They are released in this order: memory, then the ticket.
pub(super) struct FinishedObject {
    _memory: [Permit; 2],
    _ticket: AdmissionTicket,
}

/// An object that is being read. Dropping it stops the task.
pub(super) struct TableObject {
    pieces: mpsc::Receiver<Result<ObjectRows>>,
    _task: AbortOnDropHandle<()>,
}

impl TableObjects {
    pub(super) fn new(batch: Arc<Batch>) -> Self {
        let requests = batch.request.samples.iter().map(|_| OnceLock::new());
        Self {
            requests: requests.collect(),
            batch,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.batch.request.samples.len()
    }

    pub(super) fn pipeline(&self) -> &Pipeline {
        &self.batch.pipeline
    }

    pub(super) fn compression(&self) -> Compression {
        self.batch.request.compression
    }

    pub(super) fn job(&self, index: usize) -> PipelineJob {
        self.batch.job(index, self.batch.tenant.position_now())
    }

    /// The stage of the table: the number of steps to run.
    pub(super) fn stage(&self) -> usize {
        self.job(0).scan_stage().unwrap_or_default()
    }

    fn key(&self, index: usize) -> Arc<str> {
        String::from_utf8_lossy(&self.batch.request.samples[index].id(self.batch.request.store.as_ref()))
            .into()
    }

    /// Reads the schemas of all objects. Returns their combination, and the header `source-bytes`: bytes to read of the bytes
    /// that are stored.
    pub(super) async fn read_schemas(&self, rule: MergeRule) -> Result<(SchemaMerger, String)> {
        let mut several = SchemaMerger::new(rule, self.batch.services.sample_limits().tables.max_columns);
        let (mut read, mut stored) = (0_u64, 0_u64);
        let mut scans = stream::iter(0..self.len())
            .map(|index| async move {
                let (job, key) = (self.job(index), self.key(index));
                let planned = async { self.plan(self.open(index).await?, &job).await };
                let planned = planned.await.map_err(|error| with_key(&key, error))?;
                Ok::<_, Error>((key, planned))
            })
            .buffered(self.batch.services.limits.batch_in_flight);
        while let Some(scan) = scans.next().await {
            let (key, planned): (Arc<str>, PlannedScan) = scan?;
            let (schema, mut all) = (Arc::clone(planned.schema()), several);
            // On the CPU pool, because thousands of columns take milliseconds: too long for the I/O threads.
            let add = move || all.add(&key, &schema).map(|()| all);
            several = self
                .batch
                .services
                .cpu
                .run(&self.batch.tenant.position_now(), add)
                .await??;
            read = read.saturating_add(planned.source_bytes());
            stored = stored.saturating_add(planned.estimate().object_bytes);
        }
        Ok((several, format!("{read}/{stored}")))
    }

    /// Reads the end of an object on the caller's behalf.
    async fn open(&self, index: usize) -> Result<OpenedTable> {
        let request = self.request(index)?;
        match FetchedTable::fetch(&self.batch.services, &self.job(index), request.clone(), None).await? {
            FetchedTable::Table(table) => {
                self.batch.mark_authorized(index, request);
                Ok(table)
            }
            FetchedTable::Refused(answer) => Err(StoreRefusal::read(answer).await.into()),
        }
    }

    /// The request for an object, decided on once.
    fn request(&self, index: usize) -> Result<&OriginRequest> {
        let slot = &self.requests[index];
        if let Some(request) = slot.get() {
            return Ok(request);
        }
        let request = self.batch.origin_request(index)?;
        Ok(slot.get_or_init(|| request))
    }

    async fn plan(&self, table: OpenedTable, job: &PipelineJob) -> Result<PlannedScan> {
        let not_a_scan = || Error::new(ErrorKind::Internal, "the prefix is not a table scan");
        let stage = job.scan_stage().ok_or_else(not_a_scan)?;
        table.plan(&self.batch.services, job, stage).await
    }

    /// Reads an object, and sends its rows, converted to the schema of the combined table. Returns `None` if the receiver was
    /// dropped.
    async fn send(
        &self,
        index: usize,
        (several, form): (Arc<SchemaMerger>, TableForm),
        mut ticket: AdmissionTicket,
        pieces: &mpsc::Sender<Result<ObjectRows>>,
    ) -> Result<Option<Box<FinishedObject>>> {
        let (job, key) = (self.job(index), self.key(index));
        let table = self.open(index).await;
        ticket.wait().await;
        let planned = self.plan(table?, &job).await?;
        let schema = Arc::clone(planned.schema());
        let fit = move || several.mapping(&key, &schema, &several.schema());
        let fitting = Arc::new(
            self.batch
                .services
                .cpu
                .run(&self.batch.tenant.position_now(), fit)
                .await??,
        );
        let rows = planned
            .estimate()
            .max_rows
            .map_or(BATCH_ROWS as u64, |rows| rows.min(BATCH_ROWS as u64));
        let added = fitting
            .added_bytes_per_row()
            .saturating_mul(rows)
            .saturating_mul(LIVE_BATCHES as u64);
        let more = added.saturating_add(form.buffered_bytes());
        let admitted = planned.admit(&self.batch.services, &job, more).await?;
        let (mut scan, mut task) = (admitted.scan, admitted.task);
        loop {
            let fitting = Arc::clone(&fitting);
            let next = async move {
                let batch = scan.next().await;
                let batch = batch.map(|batch| fitting.apply(&batch?)).transpose();
                (scan, batch)
            };
            let batch;
            (scan, batch) = task.run(next).await?;
            let Some(batch) = batch? else {
                break;
            };
            if pieces.send(Ok(ObjectRows::Batch(batch))).await.is_err() {
                return Ok(None);
            }
        }
        let name = self.batch.pipeline.steps().first().map_or("", Step::name);
        self.batch
            .services
            .metrics
            .add_step_time(name, task.compute_time());
        drop(scan);
        Ok(Some(Box::new(FinishedObject {
            _memory: [admitted.source_permit, admitted.permit],
            _ticket: ticket,
        })))
    }
}

impl TableObject {
    /// Starts a task that reads an object of the request.
    pub(super) fn start(
        objects: &Arc<TableObjects>,
        index: usize,
        (several, form): (Arc<SchemaMerger>, TableForm),
        ticket: AdmissionTicket,
    ) -> Self {
        let (sender, pieces) = mpsc::channel(PREFETCHED_BATCHES);
        let objects = Arc::clone(objects);
        let task = tokio::spawn(async move {
            let last = match objects.send(index, (several, form), ticket, &sender).await {
                Ok(Some(ending)) => Ok(ObjectRows::End(ending)),
                // The receiver was dropped.
                Ok(None) => return,
                Err(error) => Err(with_key(&objects.key(index), error)),
            };
            drop(sender.send(last).await);
        });
        Self {
            pieces,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// The next rows, or the end.
    pub(super) async fn next(&mut self) -> Result<ObjectRows> {
        let ended = || Err(Error::new(ErrorKind::Internal, "the task of a scan ended early"));
        self.pieces.recv().await.unwrap_or_else(ended)
    }
}

/// Adds the key of the object to an error.
fn with_key(key: &str, error: Error) -> Error {
    Error::new(error.kind(), format!("`{key}`: {}", error.message())).with_source(error)
}

//! The samples of a batch. A task per sample fetches and runs it; rows are returned in the requested order.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use pushdown::{
    Sample,
    wire::{CacheStatus, Order, Row, RowError},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    Batch,
    admission_order::{AdmissionOrder, AdmissionTicket},
    columns,
    joined_entries::EntryTickets,
};
use crate::{
    compute::QueuePosition,
    error::{Error, ErrorKind, Result},
    origin::{EntryTicket, OriginRequest},
    routes::{
        http::StoreRefusal,
        job::PipelineJob,
        stage::StagedJob,
        table::FetchedTable,
        value::{ComputedSample, FetchedSample, ValueMemory},
    },
    s3::errors::{ErrorAnswer, code},
};

/// A row and the memory of its value.
#[derive(Debug)]
pub(super) struct ReadyRow {
    pub(super) row: Row,
    pub(super) memory: Option<ValueMemory>,
}

/// These rows of `batch`, whose work is queued at `position`. Dropping the stream aborts the samples in flight.
pub(super) fn ready_rows(
    batch: Arc<Batch>,
    position: QueuePosition,
    rows: Range<usize>,
) -> impl Stream<Item = ReadyRow> + Send {
    let (in_flight, order) = (batch.services.limits.batch_in_flight, batch.request.order);
    let mut admission = AdmissionOrder::default();
    let tasks = stream::iter(rows).map(move |index| {
        let (batch, ticket, entry_tickets) = (
            Arc::clone(&batch),
            admission.next_ticket(),
            batch.entry_tickets(index),
        );
        let job = batch.job(index, position.renewed());
        let task = tokio::spawn(async move { row(&batch, index, &job, ticket, entry_tickets).await });
        async move {
            AbortOnDropHandle::new(task)
                .await
                .unwrap_or_else(|_| failed_task(index))
        }
    });
    match order {
        Order::Request => tasks.buffered(in_flight).left_stream(),
        Order::Any => tasks.buffer_unordered(in_flight).right_stream(),
    }
}

async fn row(
    batch: &Batch,
    index: usize,
    job: &Arc<PipelineJob>,
    ticket: AdmissionTicket,
    entry_tickets: EntryTickets,
) -> ReadyRow {
    let deadline = batch.services.limits.request_deadline;
    let done = tokio::time::timeout(deadline, sample(batch, index, job, ticket, entry_tickets)).await;
    let done = done.unwrap_or_else(|_elapsed| {
        Err(SampleError::from(Error::new(
            ErrorKind::OriginTimeout,
            format!("the sample timed out: expected an answer within {deadline:?}"),
        )))
    });
    let row = u32::try_from(index).unwrap_or(u32::MAX);
    match done {
        Ok((computed, columns)) => {
            let (is_delivered, cache) = (batch.request.deliver, &batch.services.cache);
            let is_stored = || computed.cached.is_some_and(|key| cache.contains(&key));
            let stored = (!is_delivered).then(is_stored);
            // What is not sent needs no memory any more.
            let (value, memory) = if is_delivered {
                (computed.sample, Some(computed.memory))
            } else {
                (Sample::Bytes(Bytes::new()), None)
            };
            ReadyRow {
                row: Row {
                    row,
                    stage: u8::try_from(computed.stage).unwrap_or(u8::MAX),
                    seconds: computed.compute_time.as_secs_f32(),
                    cache: computed.origin.into(),
                    value: Ok(value),
                    columns,
                    stored,
                },
                memory,
            }
        }
        Err(SampleError(error)) => ReadyRow {
            row: Row {
                row,
                stage: 0,
                seconds: 0.0,
                cache: CacheStatus::Computed,
                value: Err(error),
                columns: Vec::new(),
                stored: None,
            },
            memory: None,
        },
    }
}

/// The value of a sample, and its further columns.
async fn sample(
    batch: &Batch,
    index: usize,
    job: &Arc<PipelineJob>,
    mut ticket: AdmissionTicket,
    entry_tickets: EntryTickets,
) -> Result<(ComputedSample, Vec<Option<Bytes>>), SampleError> {
    let request = match batch.origin_request(index) {
        Ok(request) => request,
        Err(error) => {
            drop(entry_tickets);
            ticket.wait().await;
            return Err(error.into());
        }
    };
    // Both to their ends: an admission ticket must not be dropped before those before it.
    let (value, columns) = tokio::join!(
        value(batch, index, &request, entry_tickets.value, job, ticket),
        columns::read(batch, index, &request, entry_tickets.columns),
    );
    Ok((value?, columns?))
}

async fn value(
    batch: &Batch,
    index: usize,
    request: &OriginRequest,
    mut entry_ticket: Option<EntryTicket>,
    job: &Arc<PipelineJob>,
    mut ticket: AdmissionTicket,
) -> Result<ComputedSample, SampleError> {
    let services = &batch.services;
    if let Some(scan) = StagedJob::of_scan(services, job) {
        let scanned = scan_row(batch, index, request, entry_ticket.take(), scan, ticket);
        match scanned.await? {
            ScannedRow::Computed(computed) => return Ok(*computed),
            ScannedRow::ObjectIsSmaller(returned) => ticket = returned,
        }
    }
    let etag = batch.listed_etag(index);
    let hints = batch.hints(etag.as_ref());
    let opened = FetchedSample::fetch(services, job, request, entry_ticket, &hints).await;
    ticket.wait().await;
    let opened = match opened? {
        FetchedSample::Opened(opened) => opened,
        FetchedSample::Refused(answer) => return Err(StoreRefusal::read(answer).await.into()),
    };
    batch.mark_authorized(index, request);
    Ok(opened.compute(ticket).await?)
}

/// Computes the table of an object that is read in parts, unless `smallest` resolves to the stored object.
async fn scan_row(
    batch: &Batch,
    index: usize,
    request: &OriginRequest,
    entry_ticket: Option<EntryTicket>,
    scan: StagedJob,
    mut ticket: AdmissionTicket,
) -> Result<ScannedRow, SampleError> {
    let table = FetchedTable::fetch(scan, request.clone(), entry_ticket).await;
    ticket.wait().await;
    let table = match table? {
        FetchedTable::Table(table) => table,
        FetchedTable::Refused(answer) => return Err(StoreRefusal::read(answer).await.into()),
    };
    batch.mark_authorized(index, request);
    let Some(planned) = table.plan_row().await? else {
        return Ok(ScannedRow::ObjectIsSmaller(ticket));
    };
    let admitted = planned.admit_row().await?;
    drop(ticket);
    let computed = admitted.compute_row().await?;
    Ok(ScannedRow::Computed(Box::new(computed)))
}

/// The outcome of a scan for a row.
enum ScannedRow {
    Computed(Box<ComputedSample>),
    /// The stored object is smaller than its rows; the ticket is returned unused.
    ObjectIsSmaller(AdmissionTicket),
}

/// The error of a sample, for its row.
pub(super) struct SampleError(RowError);

impl From<Error> for SampleError {
    fn from(error: Error) -> Self {
        let answer = ErrorAnswer::from_error(&error);
        Self(RowError {
            code: answer.code.to_owned(),
            message: answer.message.into_owned(),
        })
    }
}

impl From<StoreRefusal> for SampleError {
    fn from(refusal: StoreRefusal) -> Self {
        Self(RowError {
            code: refusal.code,
            message: refusal.message,
        })
    }
}

fn failed_task(index: usize) -> ReadyRow {
    let error = RowError {
        code: code(ErrorKind::Internal).to_owned(),
        message: "the sample's task panicked".to_owned(),
    };
    ReadyRow {
        row: Row {
            row: u32::try_from(index).unwrap_or(u32::MAX),
            stage: 0,
            seconds: 0.0,
            cache: CacheStatus::Computed,
            value: Err(error),
            columns: Vec::new(),
            stored: None,
        },
        memory: None,
    }
}

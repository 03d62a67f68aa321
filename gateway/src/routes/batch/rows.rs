//! The samples of a batch. A task per sample fetches and runs it; rows are returned in the requested order.

use std::sync::{Arc, OnceLock};

use futures::{Stream, StreamExt as _, stream};
use http::{HeaderValue, uri::PathAndQuery};
use pushdown::wire::{BatchRequest, BatchSample, Order, Row, RowError};
use tokio_util::task::AbortOnDropHandle;

use super::{
    InFlightBatch, ReservedRequest, Services,
    admission_order::{AdmissionOrder, AdmissionTicket},
};
use crate::{
    compute::{Permit, QueuePosition},
    error::{Error, ErrorKind, Result},
    origin::OriginRequest,
    routes::{
        http::StoreRefusal,
        job::PipelineJob,
        table::FetchedTable,
        value::{ComputedSample, FetchedSample},
    },
    s3::errors::code,
};

/// A row and the permit for its value.
#[derive(Debug)]
pub(super) struct ReadyRow {
    pub(super) row: Row,
    pub(super) permit: Option<Permit>,
}

/// All rows of `request`. Dropping the stream aborts the samples in flight.
pub(super) fn ready_rows(
    gateway: Services,
    request: Arc<ReservedRequest>,
    host: HeaderValue,
    position: QueuePosition,
) -> impl Stream<Item = ReadyRow> + Send {
    let in_flight = gateway.limits.batch_in_flight;
    let order = request.order;
    let pipeline = Arc::new(request.pipeline.clone());
    // Set by the first sample that the store authorizes: before that the tenant is only claimed.
    let running = Arc::new(OnceLock::new());
    let mut admission = AdmissionOrder::default();
    let tasks = stream::iter(0..request.samples.len()).map(move |index| {
        let (gateway, request, host) = (gateway.clone(), Arc::clone(&request), host.clone());
        let ticket = admission.next_ticket();
        let job = PipelineJob::for_sample(&request, index, &pipeline, position.renewed());
        let running = Arc::clone(&running);
        let task =
            tokio::spawn(async move { gateway.row(&request, index, job, host, ticket, &running).await });
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

impl Services {
    async fn row(
        &self,
        request: &BatchRequest,
        index: usize,
        job: PipelineJob,
        host: HeaderValue,
        ticket: AdmissionTicket,
        running: &OnceLock<InFlightBatch>,
    ) -> ReadyRow {
        let deadline = self.limits.request_deadline;
        let done =
            tokio::time::timeout(deadline, self.sample(request, index, &job, host, ticket, running)).await;
        let done = done.unwrap_or_else(|_elapsed| {
            Err(SampleError::from(Error::new(
                ErrorKind::OriginTimeout,
                format!("the sample timed out: expected an answer within {deadline:?}"),
            )))
        });
        let row = u32::try_from(index).unwrap_or(u32::MAX);
        match done {
            Ok(computed) => ReadyRow {
                row: Row {
                    row,
                    stage: u8::try_from(computed.stage).unwrap_or(u8::MAX),
                    seconds: computed.compute_time.as_secs_f32(),
                    value: Ok(computed.sample),
                },
                permit: Some(computed.permit),
            },
            Err(SampleError(error)) => ReadyRow {
                row: Row {
                    row,
                    stage: 0,
                    seconds: 0.0,
                    value: Err(error),
                },
                permit: None,
            },
        }
    }

    async fn sample(
        &self,
        request: &BatchRequest,
        index: usize,
        job: &PipelineJob,
        host: HeaderValue,
        mut ticket: AdmissionTicket,
        running: &OnceLock<InFlightBatch>,
    ) -> Result<ComputedSample, SampleError> {
        let target = match target(&request.samples[index], &request.presign) {
            Ok(target) => OriginRequest::presigned(host, target),
            Err(error) => {
                ticket.wait().await;
                return Err(error.into());
            }
        };
        if job.scan_stage().is_some() {
            match self.scan_row(target.clone(), job, ticket, running).await? {
                ScannedRow::Computed(computed) => return Ok(*computed),
                ScannedRow::ObjectIsSmaller(returned) => ticket = returned,
            }
        }
        let opened = FetchedSample::fetch(self, target, job).await;
        ticket.wait().await;
        let opened = match opened? {
            FetchedSample::Object(opened) => opened,
            FetchedSample::Refused(answer) => return Err(StoreRefusal::read(answer).await.into()),
        };
        running.get_or_init(|| self.tenant_batches.enter(job.position.tenant()));
        let admitted = opened.admit(self, job).await?;
        drop(ticket);
        Ok(admitted.compute(self, job).await?)
    }
}

impl Services {
    /// Computes the table of an object that is read in parts, unless `smallest` resolves to the stored object.
    async fn scan_row(
        &self,
        request: OriginRequest,
        job: &PipelineJob,
        mut ticket: AdmissionTicket,
        running: &OnceLock<InFlightBatch>,
    ) -> Result<ScannedRow, SampleError> {
        let table = FetchedTable::fetch(self, request).await;
        ticket.wait().await;
        let table = match table? {
            FetchedTable::Table(table) => table,
            FetchedTable::Refused(answer) => return Err(StoreRefusal::read(answer).await.into()),
        };
        running.get_or_init(|| self.tenant_batches.enter(job.position.tenant()));
        let Some(planned) = table.plan_row(self, job).await? else {
            return Ok(ScannedRow::ObjectIsSmaller(ticket));
        };
        let admitted = planned.admit_row(self, job).await?;
        drop(ticket);
        let computed = admitted.compute_row(self, job).await?;
        Ok(ScannedRow::Computed(Box::new(computed)))
    }
}

/// The outcome of a scan for a row.
enum ScannedRow {
    Computed(Box<ComputedSample>),
    /// The stored object is smaller than its rows; the ticket is returned unused.
    ObjectIsSmaller(AdmissionTicket),
}

/// The error of a sample, for its row.
struct SampleError(RowError);

impl From<Error> for SampleError {
    fn from(error: Error) -> Self {
        Self(RowError {
            code: code(error.kind()).to_owned(),
            message: error.message().to_owned(),
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

/// The presigned request target of a sample.
pub(in crate::routes) fn target(sample: &BatchSample, presign: &str) -> Result<PathAndQuery> {
    sample.target(presign).parse().map_err(|error| {
        Error::new(
            ErrorKind::InvalidRequest,
            format!("invalid path `{}`: {error}", sample.path),
        )
    })
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
            value: Err(error),
        },
        permit: None,
    }
}

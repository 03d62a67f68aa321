//! POST of a batch of samples: runs one pipeline on each, and streams the rows as Arrow IPC when they are ready.

mod admission_order;
mod body;
mod intake;
mod rows;
mod tenant_batches;

use std::{pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, header};
use pushdown::wire::{self, BatchRequest, BatchWriter, Compression, OnError, Row, ValueType};
use tokio::time::{Instant, timeout_at};

use super::{
    Services,
    http::{insert_engine, insert_warnings, stream_body},
};
use crate::{
    body::{Body, BoxError},
    compute::{CpuPool, Permit, QueuePosition, Tenant},
    error::{Error, ErrorKind, Result},
    s3::sign::Signature,
    server::StallGuard,
};
use rows::{ReadyRow, ready_rows};
pub(super) use {
    admission_order::{AdmissionOrder, AdmissionTicket},
    intake::ReservedRequest,
    rows::target,
    tenant_batches::{InFlightBatch, TenantBatches},
};

/// Ready rows are sent together up to this many bytes of values, because each write wakes both ends.
const MAX_GROUP_BYTES: u64 = 512 << 10;
/// Maximum number of rows that are sent together.
const MAX_GROUP_ROWS: usize = 256;
/// Longest time that a row waits for further rows.
const MAX_GROUP_WAIT: Duration = Duration::from_millis(5);

impl Services {
    /// Answers a batch request.
    ///
    /// # Errors
    /// If the request as a whole fails. The failure of a sample is a row of the answer.
    pub async fn batch<B>(&self, request: Request<B>) -> Result<Response<Body>>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        if parts.method != Method::POST {
            return Err(Error::new(
                ErrorKind::MethodNotAllowed,
                "invalid method for a batch: expected POST",
            ));
        }
        let host = parts.headers.get(header::HOST).cloned().ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidRequest,
                "the Host header is missing: the signatures of samples require it",
            )
        })?;
        let request = Arc::new(self.intake(&parts, body).await?);
        let tenant =
            Tenant::from_access_key(Signature::read(&HeaderMap::new(), Some(&request.presign)).access_key());
        if let Some(rule) = request.table {
            return self.one_table(&parts, (request, rule), host, tenant).await;
        }
        let position = tenant.position_now();
        let mut headers = HeaderMap::new();
        insert_warnings(&mut headers, &request.pipeline);
        let writer = BatchWriter::new(value_type(&request)?, request.compression, &request.pipeline)?;
        let head = writer.start();
        let mut answer = BatchAnswer {
            rows: ready_rows(self.clone(), Arc::clone(&request), host, position.clone()).boxed(),
            writer: Some(writer),
            // Compression takes too long for the I/O threads.
            compression: (request.compression != Compression::None).then(|| (self.cpu.clone(), position)),
            on_error: request.on_error,
            sent_permits: Vec::new(),
            _guard: self.stall_guard(&parts),
        };
        // With `on_error: fail` an error in the first rows still becomes the status of the answer.
        let first = match request.on_error {
            OnError::Fail => answer.frames().await?,
            OnError::Row => Some(Vec::new()),
        };
        let mut frames = vec![head];
        let ended = first.is_none();
        frames.extend(first.into_iter().flatten());
        let rest = stream::try_unfold((!ended).then_some(answer), |answer| async {
            let Some(mut answer) = answer else {
                return Ok(None);
            };
            let frames = answer.frames().await?;
            Ok(frames.map(|frames| (frames, Some(answer))))
        });
        let mut response = Response::new(stream_body(frames, rest));
        *response.headers_mut() = headers;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/vnd.apache.arrow.stream"),
        );
        headers.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("private, no-store"),
        );
        insert_engine(headers, request.pipeline.steps());
        headers.extend(self.share_headers(&tenant));
        Ok(response)
    }
}

impl Services {
    /// The tenant's share of the gateway, for the client's planner: its share of the cores, its number of batches, the CPU
    /// time so far, and the ID of the CPUs.
    fn share_headers(&self, tenant: &Tenant) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let share = self.tenant_batches.share(tenant);
        // Integer arithmetic in hundredths, written as a decimal number.
        let hundredths = self.cpu.threads().get() * 100 / share.tenants;
        let cores = format!("{}.{:02}", hundredths / 100, hundredths % 100);
        let time = self.cpu_time.time();
        let headers = [
            (wire::header::CORES, Some(cores)),
            (wire::header::BATCHES, Some(share.batches.to_string())),
            (wire::header::CPU, time.map(|time| time.to_string())),
            (wire::header::CPUS, self.cpu_set_id.clone()),
        ];
        headers.into_iter().filter_map(|(name, value)| {
            let value = HeaderValue::from_str(&value?).ok()?;
            Some((HeaderName::from_static(name), value))
        })
    }
}

/// The type of the value column: it covers all stages that the samples' splits can resolve to.
fn value_type(request: &BatchRequest) -> Result<ValueType> {
    let kinds = request.pipeline.kinds();
    let mut stages = Vec::new();
    for sample in &request.samples {
        match sample.split.unwrap_or(request.split) {
            wire::Split::Smallest => return Ok(ValueType::for_kinds(kinds)),
            split => stages.push(split.resolve(&request.pipeline, &pushdown::BytesKind::default())?),
        }
        // A value that is too large is replaced by the object.
        stages.extend(sample.max_bytes.map(|_| 0));
    }
    stages.sort_unstable();
    stages.dedup();
    let used: Vec<_> = stages.into_iter().map(|stage| kinds[stage].clone()).collect();
    Ok(ValueType::for_kinds(&used))
}

/// An answer that is being sent.
struct BatchAnswer {
    rows: Pin<Box<dyn Stream<Item = ReadyRow> + Send>>,
    /// `None` after the end marker was written.
    writer: Option<BatchWriter>,
    /// The pool that compresses rows, and the request's position in its queue. `None` if rows are not compressed.
    compression: Option<(CpuPool, QueuePosition)>,
    on_error: OnError,
    /// Permits of the last sent rows: hyper may still buffer them until it polls for more.
    sent_permits: Vec<Permit>,
    _guard: Option<StallGuard>,
}

impl BatchAnswer {
    /// The frames of the next record batches; `None` after the end marker.
    async fn frames(&mut self) -> Result<Option<Vec<Bytes>>> {
        let Some(first) = self.rows.next().await else {
            return self
                .writer
                .take()
                .map(|writer| Ok(vec![writer.finish()?]))
                .transpose();
        };
        let mut group = RowsToSend::default();
        group.push(first);
        let deadline = Instant::now() + MAX_GROUP_WAIT;
        while group.bytes < MAX_GROUP_BYTES && group.rows.len() < MAX_GROUP_ROWS {
            match timeout_at(deadline, self.rows.next()).await {
                Ok(Some(row)) => group.push(row),
                Ok(None) | Err(_) => break,
            }
        }
        if self.on_error == OnError::Fail
            && let Some(error) = group.rows.iter().find_map(|row| row.value.as_ref().err())
        {
            let message = format!("a sample failed (the request has on_error=fail): {error}");
            return Err(Error::new(ErrorKind::InvalidRequest, message));
        }
        self.sent_permits = group.permits;
        let Some(mut writer) = self.writer.take() else {
            return Ok(None);
        };
        let rows = group.rows;
        let write = move || (writer.rows(rows), writer);
        let (frames, writer) = match &self.compression {
            Some((cpu, position)) => cpu.run(&position.renewed(), write).await?,
            None => write(),
        };
        self.writer = Some(writer);
        Ok(Some(frames?))
    }
}

/// Rows that are sent together.
#[derive(Default)]
struct RowsToSend {
    rows: Vec<Row>,
    permits: Vec<Permit>,
    bytes: u64,
}

impl RowsToSend {
    fn push(&mut self, ready: ReadyRow) {
        self.bytes += ready.row.value.as_ref().map_or(0, pushdown::Sample::bytes);
        self.rows.push(ready.row);
        self.permits.extend(ready.permit);
    }
}

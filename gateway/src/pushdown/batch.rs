//! POST of many samples: one pipeline, one Arrow IPC stream back, rows as they are ready.

mod body;
mod intake;
mod rows;
mod turn;

use std::{pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, header};
use pushdown::wire::{self, BatchRequest, BatchWriter, Compression, OnError, Row, ValueType};
use tokio::time::{Instant, timeout_at};

use super::{
    Pushdown,
    flow::flow,
    headers::{insert_engine, warn},
};
use crate::{
    body::{Body, BoxError},
    compute::{CpuPool, Permit, Standing, Tenant},
    error::{Error, ErrorKind, Result},
    s3::sign::Signature,
    server::StallGuard,
};
use rows::{Ready, ready_rows};
pub(super) use {
    intake::HeldRequest,
    rows::target,
    turn::{Line, Turn},
};

/// Rows are sent together once they have this many bytes of values: each write wakes both ends.
const GATHER_BYTES: u64 = 512 << 10;
/// At most so many.
const GATHER_ROWS: usize = 256;
/// The longest that a row waits for the next.
const GATHER_TIME: Duration = Duration::from_millis(5);

impl Pushdown {
    /// Answers a batch request.
    ///
    /// # Errors
    /// For what is wrong with the request as a whole. A sample's failure is a row of the answer.
    pub async fn batch<B>(&self, request: Request<B>) -> Result<Response<Body>>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        if parts.method != Method::POST {
            return Err(Error::new(
                ErrorKind::MethodNotAllowed,
                "a batch is asked for with POST",
            ));
        }
        let host = parts.headers.get(header::HOST).cloned().ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidRequest,
                "the Host header is missing: samples are signed for it",
            )
        })?;
        let request = Arc::new(self.intake(&parts, body).await?);
        let tenant = Tenant::of(Signature::read(&HeaderMap::new(), Some(&request.presign)).access_key());
        if let Some(rule) = request.table {
            return self.one_table(&parts, (request, rule), host, tenant).await;
        }
        let came = tenant.now();
        let mut headers = HeaderMap::new();
        warn(&mut headers, &request.pipeline);
        let writer = BatchWriter::new(value_type(&request)?, request.compression, &request.pipeline)?;
        let head = writer.start();
        let mut answer = Answer {
            rows: ready_rows(self.clone(), Arc::clone(&request), host, came.clone()).boxed(),
            writer: Some(writer),
            // Compressing takes too long for the I/O threads.
            compressing: (request.compression != Compression::None).then(|| (self.cpu.clone(), came)),
            on_error: request.on_error,
            held: Vec::new(),
            _guard: self.guard(&parts),
        };
        // With `on_error: fail` the first rows decide whether there is an answer at all.
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
        let mut response = Response::new(flow(frames, rest));
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
        headers.extend(self.part(&tenant));
        Ok(response)
    }
}

impl Pushdown {
    /// What a batch of this tenant has of the gateway: cores beside other tenants', and the batches that share them; and
    /// how busy its CPUs are.
    fn part(&self, tenant: &Tenant) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let share = self.in_flight.share(tenant);
        // In hundredths, written as a decimal number.
        let hundredths = self.cpu.threads().get() * 100 / share.tenants;
        let cores = format!("{}.{:02}", hundredths / 100, hundredths % 100);
        let time = self.cpus.time();
        let headers = [
            (wire::header::CORES, Some(cores)),
            (wire::header::BATCHES, Some(share.batches.to_string())),
            (wire::header::CPU, time.map(|time| time.to_string())),
            (wire::header::CPUS, self.name_of_cpus.clone()),
        ];
        headers.into_iter().filter_map(|(name, value)| {
            let value = HeaderValue::from_str(&value?).ok()?;
            Some((HeaderName::from_static(name), value))
        })
    }
}

/// The type of the value column: of all the stages that the samples' splits can lead to.
fn value_type(request: &BatchRequest) -> Result<ValueType> {
    let kinds = request.pipeline.kinds();
    let mut stages = Vec::new();
    for sample in &request.samples {
        match sample.split.unwrap_or(request.split) {
            wire::Split::Smallest => return Ok(ValueType::for_kinds(kinds)),
            split => stages.push(split.resolve(&request.pipeline, &pushdown::BytesKind::default())?),
        }
        // The object comes in place of a value that is too large.
        stages.extend(sample.max_bytes.map(|_| 0));
    }
    stages.sort_unstable();
    stages.dedup();
    let used: Vec<_> = stages.into_iter().map(|stage| kinds[stage].clone()).collect();
    Ok(ValueType::for_kinds(&used))
}

/// The answer while it is being sent.
struct Answer {
    rows: Pin<Box<dyn Stream<Item = Ready> + Send>>,
    /// Gone once the end marker is made.
    writer: Option<BatchWriter>,
    /// Where rows are written, and where the request stands there, if that takes long.
    compressing: Option<(CpuPool, Standing)>,
    on_error: OnError,
    /// Permits of the rows that were handed on last: they are in hyper's hands until it asks for more.
    held: Vec<Permit>,
    _guard: Option<StallGuard>,
}

impl Answer {
    /// The frames of the next record batches; `None` after the end marker.
    async fn frames(&mut self) -> Result<Option<Vec<Bytes>>> {
        let Some(first) = self.rows.next().await else {
            return self
                .writer
                .take()
                .map(|writer| Ok(vec![writer.finish()?]))
                .transpose();
        };
        let mut group = Group::default();
        group.push(first);
        let patience = Instant::now() + GATHER_TIME;
        while group.bytes < GATHER_BYTES && group.rows.len() < GATHER_ROWS {
            match timeout_at(patience, self.rows.next()).await {
                Ok(Some(row)) => group.push(row),
                Ok(None) | Err(_) => break,
            }
        }
        if self.on_error == OnError::Fail
            && let Some(error) = group.rows.iter().find_map(|row| row.value.as_ref().err())
        {
            let message = format!("a sample failed, and the request asked to fail with it: {error}");
            return Err(Error::new(ErrorKind::InvalidRequest, message));
        }
        self.held = group.permits;
        let Some(mut writer) = self.writer.take() else {
            return Ok(None);
        };
        let rows = group.rows;
        let write = move || (writer.rows(rows), writer);
        let (frames, writer) = match &self.compressing {
            Some((cpu, came)) => cpu.run(&came.again(), write).await?,
            None => write(),
        };
        self.writer = Some(writer);
        Ok(Some(frames?))
    }
}

/// Rows that travel together.
#[derive(Default)]
struct Group {
    rows: Vec<Row>,
    permits: Vec<Permit>,
    bytes: u64,
}

impl Group {
    fn push(&mut self, ready: Ready) {
        self.bytes += ready.row.value.as_ref().map_or(0, pushdown::Sample::bytes);
        self.rows.push(ready.row);
        self.permits.extend(ready.permit);
    }
}

//! POST of several samples as one table: the concatenated rows of all objects in one stream.

mod objects;

use std::{pin::Pin, sync::Arc};

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use http::{HeaderMap, HeaderValue, Response, header, request::Parts};
use pushdown::{
    MergeRule, SchemaMerger,
    wire::{self, Compression, TableEncoder, TableForm},
};
use tokio::time::timeout;

use super::{
    Services,
    batch::{AdmissionOrder, Batch},
    http::{AnswerForm, insert, insert_engine, insert_warnings, stream_body},
};
use crate::{
    body::Body,
    compute::{CpuPool, Tenant},
    engine,
    error::{Error, ErrorKind, Result},
    server::StallGuard,
};
use objects::{ObjectRows, TableObject, TableObjects};

/// Number of objects whose ends are read ahead (prefetch). They reserve memory only in their order: an object that had
/// memory while the client reads the rows of an earlier one could block the earlier one.
const PREFETCHED_OBJECTS: usize = 3;

/// Answers a batch request for one table.
#[derive(Debug, Clone)]
pub(super) struct BatchTableRoute {
    services: Arc<Services>,
}

impl BatchTableRoute {
    /// The route to the tables of a store, scanned by `services`.
    pub(super) const fn new(services: Arc<Services>) -> Self {
        Self { services }
    }

    /// Answers with the rows of all samples as one table. The schemas of all objects are read before the first row is sent, so
    /// that incompatible columns are an error status.
    ///
    /// # Errors
    /// The error of the first object that fails, with its key.
    pub(super) async fn answer(
        &self,
        parts: &Parts,
        batch: Arc<Batch>,
        rule: MergeRule,
    ) -> Result<Response<Body>> {
        let tenant = batch.tenant.clone();
        let objects = Arc::new(TableObjects::new(batch));
        let form = objects.form(parts)?;
        let deadline = self.services.limits.request_deadline;
        let timed_out = move |what: &str| {
            Error::new(
                ErrorKind::OriginTimeout,
                format!("the request timed out: expected {what} within {deadline:?}"),
            )
        };
        let schemas = timeout(deadline, objects.read_schemas(rule)).await;
        let (several, source_bytes) =
            schemas.map_err(|_elapsed| timed_out("the schemas of all objects"))??;
        let mut headers = HeaderMap::new();
        insert_warnings(&mut headers, objects.pipeline());
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(form.content_type()),
        );
        headers.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("private, no-store"),
        );
        insert_engine(
            &mut headers,
            &engine::stated(&objects.pipeline().steps()[..objects.stage()]),
        );
        insert(&mut headers, wire::header::SOURCE_BYTES, &source_bytes);
        insert(&mut headers, wire::header::KIND, "table");
        insert(&mut headers, wire::header::STAGE, &objects.stage().to_string());
        let schema = several.schema();
        let mut rows = CombinedRows {
            encoder: Some(TableEncoder::new(form, &schema)?),
            objects: start_all(objects, several, form),
            current: None,
            cpu: self.services.cpu.clone(),
            tenant,
            _guard: self.services.stall_guard(parts),
        };
        let first = timeout(deadline, rows.next()).await;
        let first = first.map_err(|_elapsed| timed_out("the first rows"))??;
        let rest = stream::try_unfold(rows, move |mut rows| async move {
            let next = timeout(deadline, rows.next()).await;
            let next = next.map_err(|_elapsed| timed_out("the next rows"))??;
            Ok(next.map(|pieces| (pieces, rows)))
        });
        let mut response = Response::new(stream_body(first.unwrap_or_default(), rest));
        *response.headers_mut() = headers;
        Ok(response)
    }
}

impl TableObjects {
    /// The form that the caller accepts, with the compression of the request.
    fn form(&self, parts: &Parts) -> Result<TableForm> {
        let (job, stage) = (self.job(0), self.stage());
        let form = AnswerForm::negotiate(parts, &job, stage, &job.pipeline.kinds()[stage])?;
        match (form, self.compression()) {
            (AnswerForm::Rows(TableForm::ArrowStream(_)), compression)
                if compression != Compression::None =>
            {
                Ok(TableForm::ArrowStream(compression))
            }
            (AnswerForm::Rows(form), _) => Ok(form),
            (AnswerForm::Value(_), _) => Err(Error::new(
                ErrorKind::Internal,
                "expected a form for rows, found one for a value",
            )),
        }
    }
}

/// Reads all objects in their order, with the next few prefetched.
fn start_all(
    objects: Arc<TableObjects>,
    several: SchemaMerger,
    form: TableForm,
) -> Pin<Box<dyn Stream<Item = TableObject> + Send>> {
    let (several, mut admission) = (Arc::new(several), AdmissionOrder::default());
    let count = objects.len();
    stream::iter(0..count)
        .map(move |index| {
            let ticket = admission.next_ticket();
            let object = TableObject::start(&objects, index, (Arc::clone(&several), form), ticket);
            async move { object }
        })
        .buffered(PREFETCHED_OBJECTS)
        .boxed()
}

/// The encoded rows of all objects.
struct CombinedRows {
    objects: Pin<Box<dyn Stream<Item = TableObject> + Send>>,
    current: Option<TableObject>,
    /// `None` after the last row.
    encoder: Option<TableEncoder>,
    cpu: CpuPool,
    tenant: Tenant,
    _guard: Option<StallGuard>,
}

impl CombinedRows {
    /// The next pieces; `None` at the end.
    async fn next(&mut self) -> Result<Option<Vec<Bytes>>> {
        while let Some(mut encoder) = self.encoder.take() {
            let batch = self.next_batch().await?;
            let write = move || match batch {
                Some(batch) => Ok((encoder.write(&batch)?, Some(encoder))),
                None => Ok::<_, pushdown::Error>((encoder.finish()?, None)),
            };
            let (pieces, encoder) = self.cpu.run(&self.tenant.position_now(), write).await??;
            self.encoder = encoder;
            if !pieces.is_empty() {
                return Ok(Some(pieces));
            }
        }
        Ok(None)
    }

    /// The next record batch, of the current object or of the next one with rows.
    async fn next_batch(&mut self) -> Result<Option<arrow_array::RecordBatch>> {
        loop {
            let object = match &mut self.current {
                Some(object) => object,
                None => match self.objects.next().await {
                    Some(object) => self.current.insert(object),
                    None => return Ok(None),
                },
            };
            match object.next().await? {
                ObjectRows::Batch(batch) => return Ok(Some(batch)),
                // All its rows were sent or are in the encoder: releases its memory, and admits the next object.
                ObjectRows::End(finished) => {
                    drop(finished);
                    self.current = None;
                }
            }
        }
    }
}

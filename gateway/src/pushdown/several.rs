//! POST of many samples as one table: the rows of one after those of the other, in one stream.

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
    Pushdown,
    batch::{HeldRequest, Line},
    flow::flow,
    form::AnswerForm,
    headers::{insert, insert_engine, warn},
};
use crate::{
    body::Body,
    compute::{CpuPool, Tenant},
    error::{Error, ErrorKind, Result},
    server::StallGuard,
};
use objects::{Object, Objects, Piece};

/// Objects whose ends are read before it is their turn. What takes memory waits for the turn: an object that held it while
/// the client takes the rows of another would keep it from that one.
const AHEAD: usize = 3;

impl Pushdown {
    /// Answers with the rows of all samples as one table. All objects are looked at before the first row leaves, so that
    /// columns that do not agree have an error of their own.
    ///
    /// # Errors
    /// As the first object that fails does, by its key.
    pub(super) async fn one_table(
        &self,
        parts: &Parts,
        (request, rule): (Arc<HeldRequest>, MergeRule),
        host: HeaderValue,
        tenant: Tenant,
    ) -> Result<Response<Body>> {
        let objects = Arc::new(Objects::new(self.clone(), request, host, tenant.clone()));
        let form = objects.form(parts)?;
        let deadline = self.limits.request_deadline;
        let late = move |what: &str| {
            Error::new(
                ErrorKind::OriginTimeout,
                format!("{what} took longer than {deadline:?}"),
            )
        };
        let look = timeout(deadline, objects.look(rule)).await;
        let (several, source_bytes) = look.map_err(|_elapsed| late("looking at all objects"))??;
        let mut headers = HeaderMap::new();
        warn(&mut headers, objects.pipeline());
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(form.content_type()),
        );
        headers.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("private, no-store"),
        );
        insert_engine(&mut headers, objects.pipeline().steps());
        insert(&mut headers, wire::header::SOURCE_BYTES, &source_bytes);
        insert(&mut headers, wire::header::KIND, "table");
        insert(&mut headers, wire::header::STAGE, &objects.stage().to_string());
        let schema = several.schema();
        let mut rows = AllRows {
            encoder: Some(TableEncoder::new(form, &schema)?),
            objects: all(objects, several, form),
            current: None,
            cpu: self.cpu.clone(),
            tenant,
            _guard: self.guard(parts),
        };
        let first = timeout(deadline, rows.next()).await;
        let first = first.map_err(|_elapsed| late("the first rows"))??;
        let rest = stream::try_unfold(rows, move |mut rows| async move {
            let next = timeout(deadline, rows.next()).await;
            let next = next.map_err(|_elapsed| late("the next rows"))??;
            Ok(next.map(|pieces| (pieces, rows)))
        });
        let mut response = Response::new(flow(first.unwrap_or_default(), rest));
        *response.headers_mut() = headers;
        Ok(response)
    }
}

impl Objects {
    /// The form that the caller accepts, compressed where the request says so.
    fn form(&self, parts: &Parts) -> Result<TableForm> {
        let (job, stage) = (self.job(0), self.stage());
        let form = AnswerForm::of(parts, &job, stage, &job.pipeline.kinds()[stage])?;
        match (form, self.compression()) {
            (AnswerForm::Rows(TableForm::ArrowStream(_)), asked) if asked != Compression::None => {
                Ok(TableForm::ArrowStream(asked))
            }
            (AnswerForm::Rows(form), _) => Ok(form),
            (AnswerForm::Value(_), _) => Err(Error::new(ErrorKind::Internal, "a table is no single value")),
        }
    }
}

/// All objects in their order, the next few under way.
fn all(
    objects: Arc<Objects>,
    several: SchemaMerger,
    form: TableForm,
) -> Pin<Box<dyn Stream<Item = Object> + Send>> {
    let (several, mut line) = (Arc::new(several), Line::default());
    let count = objects.len();
    stream::iter(0..count)
        .map(move |index| {
            let object = Object::start(&objects, index, (Arc::clone(&several), form), line.next());
            async move { object }
        })
        .buffered(AHEAD)
        .boxed()
}

/// The rows of all objects as pieces of an answer.
struct AllRows {
    objects: Pin<Box<dyn Stream<Item = Object> + Send>>,
    current: Option<Object>,
    /// Gone behind the last row.
    encoder: Option<TableEncoder>,
    cpu: CpuPool,
    tenant: Tenant,
    _guard: Option<StallGuard>,
}

impl AllRows {
    /// The next pieces; `None` at the end.
    async fn next(&mut self) -> Result<Option<Vec<Bytes>>> {
        while let Some(mut encoder) = self.encoder.take() {
            let piece = self.piece().await?;
            let write = move || match piece {
                Some(batch) => Ok((encoder.write(&batch)?, Some(encoder))),
                None => Ok::<_, pushdown::Error>((encoder.finish()?, None)),
            };
            let (pieces, encoder) = self.cpu.run(&self.tenant.now(), write).await??;
            self.encoder = encoder;
            if !pieces.is_empty() {
                return Ok(Some(pieces));
            }
        }
        Ok(None)
    }

    /// The next rows, of whichever object has some.
    async fn piece(&mut self) -> Result<Option<arrow_array::RecordBatch>> {
        loop {
            let object = match &mut self.current {
                Some(object) => object,
                None => match self.objects.next().await {
                    Some(object) => self.current.insert(object),
                    None => return Ok(None),
                },
            };
            match object.next().await? {
                Piece::Rows(batch) => return Ok(Some(batch)),
                // Its rows have left, or are the encoder's: the next object may have its memory, and its turn.
                Piece::End(ending) => {
                    drop(ending);
                    self.current = None;
                }
            }
        }
    }
}

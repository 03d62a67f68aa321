//! GET of one object with a prefix that is a table scan: reads the object in parts, and streams the rows.

mod body;
mod cells;
mod encoded_rows;
mod row;
mod scan;
mod source;
mod working_memory;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use pushdown::{
    Step,
    wire::{self, Split, TableForm},
};

use super::{
    Services,
    http::{AnswerForm, AnswerHead, insert, insert_timing, respond},
    prepared::Prepared,
    request::PipelineRequest,
};
use crate::{
    body::Body,
    error::{ErrorKind, Result},
};
use body::RowsBody;
use encoded_rows::EncodedRows;
pub(super) use {
    scan::{FetchedTable, OpenedTable, PlannedScan},
    working_memory::LIVE_BATCHES,
};

/// Answers a GET with a prefix that is a table scan.
#[derive(Debug, Clone)]
pub(super) struct TableRoute {
    services: Services,
}

impl TableRoute {
    /// The route to the tables of a store, scanned by `services`.
    pub(super) const fn new(services: Services) -> Self {
        Self { services }
    }

    /// Answers with the rows; `None` if the prefix is no scan, or if `smallest` resolves to the stored object.
    ///
    /// The head is sent together with the first record batch, so that errors until then become an error status.
    ///
    /// # Errors
    /// Any kind of [`ErrorKind`]. A refusal by the store is forwarded as an answer, and is no error.
    pub(super) async fn answer(&self, request: &PipelineRequest) -> Result<Option<Response<Body>>> {
        let PipelineRequest {
            parts, job, known, ..
        } = request;
        let Some(stage) = job.scan_stage() else {
            return Ok(None);
        };
        let prepared = match known {
            Some(known) => known.clone(),
            None => match Prepared::at_stage(parts, job, stage) {
                Err(error) if error.kind() == ErrorKind::NotAcceptable => return Ok(None),
                prepared => prepared?,
            },
        };
        let AnswerForm::Rows(form) = prepared.form else {
            return Ok(None);
        };
        let table = match FetchedTable::fetch(&self.services, job, request.to_origin()?, None).await? {
            FetchedTable::Table(table) => table,
            FetchedTable::Refused(answer) => return Ok(Some(answer.into_response())),
        };
        let head = AnswerHead::derive(request, &table.headers, Some(&prepared));
        let has_rows = head.as_ref().is_ok_and(AnswerHead::has_content);
        let without_rows = |head: Result<AnswerHead>| head.map(|head| Some(head.into_empty_response()));
        // With `smallest` the ETag is that of the rows only if the rows are smaller than the object.
        let smallest = job.split == Split::Smallest;
        if !smallest && !has_rows {
            return without_rows(head);
        }
        let planned = table.plan(&self.services, job, stage).await?;
        if smallest && !is_smaller_than_object(&planned, form) {
            return Ok(None);
        }
        if !has_rows {
            return without_rows(head);
        }
        self.send_rows(request, head?.headers, planned, form)
            .await
            .map(Some)
    }

    async fn send_rows(
        &self,
        request: &PipelineRequest,
        mut headers: HeaderMap,
        planned: PlannedScan,
        form: TableForm,
    ) -> Result<Response<Body>> {
        let job = &request.job;
        let source_bytes = format!("{}/{}", planned.source_bytes(), planned.estimate().object_bytes);
        insert(&mut headers, wire::header::SOURCE_BYTES, &source_bytes);
        insert(&mut headers, wire::header::KIND, "table");
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(form.content_type()),
        );
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("none"));
        let admitted = planned.admit(&self.services, job, form.buffered_bytes()).await?;
        let mut timing = admitted.timing;
        let mut rows = EncodedRows::new(admitted.scan, admitted.task, form)?;
        let first = rows.next().await?.unwrap_or_default();
        let name = job.pipeline.steps().first().map_or("", Step::name);
        timing.add(name, rows.compute_time());
        timing.add_if_any("model", admitted.layer_time.get());
        insert_timing(&mut headers, &timing);
        let body = RowsBody::start(
            first,
            rows,
            [admitted.source_permit, admitted.permit],
            self.services.stall_guard(&request.parts),
            self.services.limits.request_deadline,
            self.services.metrics.clone(),
            name,
        );
        Ok(respond(StatusCode::OK, headers, body.boxed_unsync()))
    }
}

/// Whether the rows are certainly smaller than the stored object. False if their size has no bound.
fn is_smaller_than_object(planned: &PlannedScan, form: TableForm) -> bool {
    let estimate = planned.estimate();
    let max_bytes = form.max_bytes(planned.schema(), estimate);
    max_bytes.is_some_and(|bytes| bytes < estimate.object_bytes)
}

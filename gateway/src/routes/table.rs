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
    http::{AnswerForm, AnswerHead, insert, insert_timing, respond},
    request::PipelineRequest,
    stage::{AnswerStage, StagedJob},
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

/// Answers a GET with the rows of a scan; `None` if `smallest` resolves to the stored object.
///
/// The head is sent together with the first record batch, so that errors until then become an error status.
///
/// # Errors
/// Any kind of [`ErrorKind`]. A refusal by the store is forwarded as an answer, and is no error.
pub(super) async fn answer(request: &PipelineRequest, scan: StagedJob) -> Result<Option<Response<Body>>> {
    let stage = match request.known {
        Some(known) => known,
        None => match AnswerStage::of_job(&request.parts, &scan) {
            Err(error) if error.kind() == ErrorKind::NotAcceptable => return Ok(None),
            stage => stage?,
        },
    };
    let AnswerForm::Rows(form) = stage.form else {
        return Ok(None);
    };
    let table = match FetchedTable::fetch(scan, request.to_origin()?, None).await? {
        FetchedTable::Table(table) => table,
        FetchedTable::Refused(answer) => return Ok(Some(answer.into_response())),
    };
    let head = AnswerHead::derive(request, &table.headers, Some(stage));
    let has_rows = head.as_ref().is_ok_and(AnswerHead::has_content);
    let without_rows = |head: Result<AnswerHead>| head.map(|head| Some(head.into_empty_response()));
    // With `smallest` the ETag is that of the rows only if the rows are smaller than the object.
    let smallest = request.job.split == Split::Smallest;
    if !smallest && !has_rows {
        return without_rows(head);
    }
    let planned = table.plan().await?;
    if smallest && !is_smaller_than_object(&planned, form) {
        return Ok(None);
    }
    if !has_rows {
        return without_rows(head);
    }
    send_rows(request, head?.headers, planned, form).await.map(Some)
}

async fn send_rows(
    request: &PipelineRequest,
    mut headers: HeaderMap,
    planned: PlannedScan,
    form: TableForm,
) -> Result<Response<Body>> {
    let source_bytes = format!("{}/{}", planned.source_bytes(), planned.estimate().object_bytes);
    insert(&mut headers, wire::header::SOURCE_BYTES, &source_bytes);
    insert(&mut headers, wire::header::KIND, "table");
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(form.content_type()),
    );
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("none"));
    let admitted = planned.admit(form.buffered_bytes()).await?;
    let (mut timing, services) = (admitted.timing, &admitted.staged.services);
    let mut rows = EncodedRows::new(admitted.scan, admitted.task, form)?;
    let first = rows.next().await?.unwrap_or_default();
    let steps = request.job.pipeline.steps();
    let name = steps.first().map_or("", Step::name);
    timing.add(name, rows.compute_time());
    timing.add_if_any("model", admitted.layer_time.get());
    insert_timing(&mut headers, &services.replica, &timing);
    let body = RowsBody::start(
        first,
        rows,
        [admitted.source_permit, admitted.permit],
        services.stall_guard(&request.parts),
        services.limits.request_deadline,
        services.metrics.clone(),
        name,
    );
    Ok(respond(StatusCode::OK, headers, body.boxed_unsync()))
}

/// Whether the rows are certainly smaller than the stored object. False if their size has no bound.
fn is_smaller_than_object(planned: &PlannedScan, form: TableForm) -> bool {
    let estimate = planned.estimate();
    let max_bytes = form.max_bytes(planned.schema(), estimate);
    max_bytes.is_some_and(|bytes| bytes < estimate.object_bytes)
}

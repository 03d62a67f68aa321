//! GET of one object with a prefix that makes a table: the object is read in parts, and its rows flow.

mod body;
mod row;
mod scan;
mod source;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header, request::Parts};
use http_body_util::BodyExt as _;
use pushdown::{
    Step,
    wire::{self, Split, TableForm},
};

use super::{
    Pushdown,
    form::AnswerForm,
    headers::{conditional, head_of, insert, insert_timing, respond},
    request::Job,
};
use crate::{
    body::Body,
    error::{ErrorKind, Result},
    origin::OriginRequest,
};
use body::RowsBody;
use scan::Rows;
pub(super) use scan::{BATCHES, Found, Planned};

impl Pushdown {
    /// Answers with the rows of `stage`; `None` where `smallest` is the object as it is stored.
    ///
    /// The head goes out with the first record batch, so that what is wrong until then has a status of its own.
    pub(super) async fn table(
        &self,
        parts: &Parts,
        request: &OriginRequest,
        job: &Job,
        stage: usize,
    ) -> Result<Option<Response<Body>>> {
        let smallest = job.split == Split::Smallest;
        let form = match AnswerForm::of(parts, job, stage, &job.pipeline.kinds()[stage]) {
            Ok(form) => form,
            Err(error) if smallest && error.kind() == ErrorKind::NotAcceptable => return Ok(None),
            Err(error) => return Err(error),
        };
        let AnswerForm::Rows(rows) = form else {
            return Ok(None);
        };
        let found = match self.find(request.clone()).await? {
            Ok(found) => found,
            Err(refused) => return Ok(Some(refused.into_response())),
        };
        let headers = head_of(&found.headers, job, Some((stage, form)));
        // Whether rows are the smallest has to be known before their ETag means anything.
        if !smallest && let Some(answer) = conditional(parts, &headers)? {
            return Ok(Some(answer));
        }
        let planned = self.plan(found, job).await?;
        if smallest {
            if !pays(&planned, rows) {
                return Ok(None);
            }
            if let Some(answer) = conditional(parts, &headers)? {
                return Ok(Some(answer));
            }
        }
        self.send_rows(parts, headers, planned, job, rows).await.map(Some)
    }

    async fn send_rows(
        &self,
        parts: &Parts,
        mut headers: HeaderMap,
        planned: Planned,
        job: &Job,
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
        let admitted = self.admit_scan(planned, job, form.buffered_bytes()).await?;
        let mut timing = admitted.timing;
        let mut rows = Rows::new(admitted.scan, admitted.turns, admitted.fault, form)?;
        let first = rows.next().await?.unwrap_or_default();
        let name = job.pipeline.steps().first().map_or("", Step::name);
        timing.add(name, rows.spent());
        insert_timing(&mut headers, &timing);
        let body = RowsBody::start(
            first,
            rows,
            [admitted.held, admitted.permit],
            self.guard(parts),
            self.limits.request_deadline,
            self.metrics.clone(),
            name,
        );
        Ok(respond(StatusCode::OK, headers, body.boxed_unsync()))
    }
}

/// Whether the rows surely take fewer bytes than the object: what cannot be told beforehand does not count.
fn pays(planned: &Planned, form: TableForm) -> bool {
    let estimate = planned.estimate();
    let most = form.max_bytes(planned.schema(), estimate);
    most.is_some_and(|bytes| bytes < estimate.object_bytes)
}

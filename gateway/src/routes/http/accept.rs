//! Content negotiation: the form of a derived answer that the caller accepts.

use http::{header, request::Parts};
use pushdown::{
    Kind,
    wire::{Form, TableForm},
};

use crate::{
    error::{Error, ErrorKind, Result},
    routes::job::PipelineJob,
};

/// How a value is encoded: as a whole, or as a stream of table rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::routes) enum AnswerForm {
    Value(Form),
    Rows(TableForm),
}

impl AnswerForm {
    /// The form that the caller accepts for the value of a stage, of kind `kind`.
    ///
    /// # Errors
    /// [`ErrorKind::NotAcceptable`] if the caller accepts no form of this kind.
    pub(in crate::routes) fn negotiate(
        parts: &Parts,
        job: &PipelineJob,
        stage: usize,
        kind: &Kind,
    ) -> Result<Self> {
        let accept = accept(parts);
        let form = if job.pipeline.is_scan(&(0..stage)) {
            TableForm::negotiate(accept.as_deref()).map(Self::Rows)
        } else {
            Form::negotiate(accept.as_deref(), kind).map(Self::Value)
        };
        form.ok_or_else(|| {
            Error::new(
                ErrorKind::NotAcceptable,
                format!(
                    "unsupported Accept header: cannot send a value of {kind} as `{}`",
                    accept.unwrap_or_default()
                ),
            )
        })
    }

    /// The `Content-Type` of a value of `kind`.
    pub(in crate::routes) const fn content_type(self, kind: &Kind) -> &'static str {
        match self {
            Self::Value(form) => form.content_type(kind),
            Self::Rows(form) => form.content_type(),
        }
    }
}

/// All `Accept` headers, joined.
fn accept(parts: &Parts) -> Option<String> {
    let values = parts.headers.get_all(header::ACCEPT).iter();
    let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

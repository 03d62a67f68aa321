//! Errors of the library as one Python exception, which the package turns into its own.

use pushdown_client::{
    Error, ErrorKind,
    internal::{Escaped, SampleFailure},
    reader::{Row, RowError},
};
use pyo3::{create_exception, exceptions::PyException, prelude::*, types::PyString};

create_exception!(
    _native,
    NativeError,
    PyException,
    "An error as (kind, message, position in the pipeline's text or None)."
);

create_exception!(
    _native,
    NativeSampleError,
    PyException,
    "A sample that ends an iteration as (its entry in `Batch.errors`, a note that says why or None)."
);

/// Name of an error's kind.
const fn name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Config => "config",
        ErrorKind::Pipeline => "pipeline",
        ErrorKind::Credentials => "credentials",
        ErrorKind::NotAGateway => "not_a_gateway",
        ErrorKind::Refused => "refused",
        ErrorKind::Unreachable => "unreachable",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::Timeout => "timeout",
        ErrorKind::Interrupted => "interrupted",
        ErrorKind::Protocol => "protocol",
        ErrorKind::Sample => "sample",
        _ => "internal",
    }
}

/// A text on one line, with its control characters escaped: what a store has named cannot control a terminal.
#[pyfunction]
pub(crate) fn escape(text: &Bound<'_, PyString>) -> String {
    Escaped(text.to_string_lossy()).to_string()
}

/// Converts an error of the client.
pub(crate) fn native(error: &Error) -> PyErr {
    NativeError::new_err((name(error.kind()), error.to_string(), error.position()))
}

/// A sample without a value: its key, the code and the message of its error, its position, its row, and its member.
pub(crate) type FailedSample = (String, String, String, u64, usize, Option<String>);

/// The sample of a row, by its number in its batch.
pub(crate) fn failed_sample(number: usize, row: &Row, error: &RowError) -> FailedSample {
    (
        row.key.to_string(),
        error.code.clone(),
        error.message.clone(),
        row.position,
        number,
        row.member.as_deref().map(str::to_owned),
    )
}

/// The sample that ends an iteration.
pub(crate) fn sample(failure: &SampleFailure<'_>) -> PyErr {
    let sample = failed_sample(failure.number, failure.row, failure.error);
    NativeSampleError::new_err((sample, failure.note.clone()))
}

/// An invalid argument.
pub(crate) fn config(message: impl Into<String>) -> PyErr {
    NativeError::new_err(("config", message.into(), None::<u32>))
}

/// The use of what is closed.
pub(crate) fn closed() -> PyErr {
    let message = "it is closed: iterate over the reader again";
    NativeError::new_err(("closed", message, None::<u32>))
}

/// An error that no user causes.
pub(crate) fn internal(message: impl Into<String>) -> PyErr {
    NativeError::new_err(("internal", message.into(), None::<u32>))
}

/// The use of a reader in another process than the one that made it.
pub(crate) fn forked() -> PyErr {
    let message = "this reader was live when the process forked, and its threads are not in the child: make another iterator";
    NativeError::new_err(("forked", message, None::<u32>))
}

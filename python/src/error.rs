//! Errors of the library as one Python exception, which the package turns into its own.

use pushdown_client::{Error, ErrorKind, Escaped};
use pyo3::{create_exception, exceptions::PyException, prelude::*, types::PyString};

create_exception!(
    _native,
    NativeError,
    PyException,
    "An error as (kind, message, position in the pipeline's text or None)."
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

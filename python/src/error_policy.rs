//! What becomes of samples that fail.

use pushdown_client::{
    internal::{FailedRows, MaxErrors},
    reader::{OnError, RowError},
};
use pyo3::{
    prelude::*,
    types::{PyBool, PyFloat, PyInt},
};
use serde::{
    Deserialize as _,
    de::{IntoDeserializer as _, value::Error as NameError},
};

use crate::{
    batch::{Batch, ErrorParts},
    error::{config, native, sample},
};

/// Decides what becomes of the samples that fail in the batches of one iteration, and counts them.
#[pyclass(frozen, module = "pushdown._native")]
#[derive(Debug)]
pub(crate) struct ErrorPolicy(pushdown_client::internal::ErrorPolicy);

#[pymethods]
impl ErrorPolicy {
    /// `on_error` is "raise", "report" or "skip"; `max_errors` a whole number, a float from 0 to 1 that is a fraction of `samples`, or `None`;
    /// `samples` the number of samples in the iteration, `None` if it is unknown.
    #[new]
    fn new(on_error: &str, max_errors: Option<&Bound<'_, PyAny>>, samples: Option<usize>) -> PyResult<Self> {
        let on_error = OnError::deserialize(on_error.into_deserializer());
        let on_error = on_error.map_err(|error: NameError| config(format!("invalid on_error: {error}")))?;
        let max_errors = max_errors.map(bound).transpose()?;
        let policy = pushdown_client::internal::ErrorPolicy::new(on_error, max_errors, samples);
        Ok(Self(policy.map_err(|error| native(&error))?))
    }

    /// The batch as the consumer receives it, and which of its rows are left out. `errors` has the row, code and message of values that the
    /// consumer cannot use: they are errors of their samples, too. Raises `NativeSampleError` for a sample that ends the iteration.
    fn apply<'py>(
        &self,
        batch: &Bound<'py, Batch>,
        errors: Vec<ErrorParts>,
    ) -> PyResult<(Bound<'py, Batch>, Vec<usize>)> {
        let py = batch.py();
        let batch = if errors.is_empty() {
            batch.clone()
        } else {
            let errors = errors.into_iter();
            let errors = errors.map(|(row, code, message)| (row, RowError::new(code, message)));
            let marked = batch.get().inner().with_errors(errors);
            Bound::new(py, batch.get().with_rows(marked))?
        };
        let inner = batch.get().inner();
        match self.0.decide(inner).map_err(|failure| sample(&failure))? {
            FailedRows::Reported => Ok((batch, Vec::new())),
            FailedRows::Skipped => {
                let rows = inner.rows().iter().enumerate();
                let left_out = rows.filter(|(_, row)| row.value.is_err());
                let left_out = left_out.map(|(number, _)| number).collect();
                let delivered = batch.get().with_rows(inner.without_errors());
                Ok((Bound::new(py, delivered)?, left_out))
            }
        }
    }
}

/// The most errors: a whole number, or a fraction of the samples.
fn bound(max_errors: &Bound<'_, PyAny>) -> PyResult<MaxErrors> {
    // A bool is an int in Python.
    if let (Ok(count), false) = (max_errors.cast::<PyInt>(), max_errors.is_instance_of::<PyBool>())
        && count.ge(0)?
    {
        // A number beyond all that can be counted is no bound.
        return Ok(MaxErrors::Count(count.extract().unwrap_or(u64::MAX)));
    }
    if let Ok(ratio) = max_errors.cast::<PyFloat>()
        && ratio.value() >= 0.0
    {
        return Ok(MaxErrors::Ratio(ratio.value()));
    }
    Err(config(format!(
        "invalid max_errors: expected a number of at least 0, found {}",
        max_errors.repr()?
    )))
}

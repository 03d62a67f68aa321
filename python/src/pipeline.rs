//! Pipelines without an endpoint.

use pushdown::{ErrorKind, Pipeline};
use pushdown_cli::{Stages, jpeg};
use pyo3::prelude::*;

use crate::error::native;

/// The canonical text of a pipeline. The text of one that names models stays as it is, since only an endpoint knows them.
#[pyfunction]
pub(crate) fn parse_pipeline(text: &str) -> PyResult<String> {
    match Pipeline::parse(text) {
        Ok(pipeline) => Ok(pipeline.to_string()),
        Err(error) if error.kind() == ErrorKind::ModelRuntime => Ok(text.trim().to_owned()),
        Err(error) => Err(native(&error.into())),
    }
}

/// Kind, shape and bytes of each stage, as `pushdown check --json` prints them.
#[pyfunction]
#[pyo3(signature = (pipeline, size = None, nbytes = None))]
pub(crate) fn check_json(pipeline: &str, size: Option<(u32, u32)>, nbytes: Option<u64>) -> PyResult<String> {
    let pipeline = Pipeline::parse(pipeline).map_err(|error| native(&error.into()))?;
    stages_json(&pipeline, size, nbytes)
}

/// Kind, shape and bytes of each stage for a JPEG of this size.
pub(crate) fn stages_json(
    pipeline: &Pipeline,
    size: Option<(u32, u32)>,
    nbytes: Option<u64>,
) -> PyResult<String> {
    let stages = Stages::new(pipeline, &jpeg(size, nbytes)).map_err(|error| native(&error.into()))?;
    let mut report = stages.as_json();
    report["warnings"] = pipeline.warnings().iter().map(ToString::to_string).collect();
    Ok(report.to_string())
}

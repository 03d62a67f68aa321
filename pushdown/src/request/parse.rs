//! Parses and checks the JSON body of a batch request.

use pushdown_wire::{BatchSample, CacheHints, Compression, OnError, Order, Split, check_columns, check_presign};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BatchRequest, MAX_REQUEST_BYTES};
use crate::{Error, Kind, MergeRule, Pipeline, Result, pipeline::Resolver};

/// The request before its pipeline is parsed. Parsing it separately preserves the kind and the position of an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnparsedRequest<'a> {
    #[serde(borrow)]
    pipeline: &'a RawValue,
    #[serde(default)]
    split: Split,
    seed: Option<u64>,
    epoch: Option<u32>,
    #[serde(default)]
    on_error: OnError,
    #[serde(default)]
    order: Order,
    #[serde(default)]
    compression: Compression,
    table: Option<MergeRule>,
    cache: Option<CacheHints>,
    #[serde(default)]
    columns: Vec<String>,
    presign: Option<String>,
    samples: Vec<BatchSample>,
}

impl BatchRequest {
    /// Parses and checks a request with at most `max_samples` samples. Requirements of a split, such as a seed, are not checked:
    /// the split may depend on the object.
    ///
    /// # Errors
    /// [`InvalidPipeline`](crate::ErrorKind::InvalidPipeline) with the position in the pipeline;
    /// [`TooLarge`](crate::ErrorKind::TooLarge) past [`MAX_REQUEST_BYTES`];
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) for other errors; an error of a sample has its index.
    pub fn parse(json: &[u8], max_samples: usize, models: &dyn Resolver) -> Result<Self> {
        if json.len() > MAX_REQUEST_BYTES {
            return Err(Error::too_large(format!(
                "the batch request is too large: expected at most {MAX_REQUEST_BYTES} bytes, found {}",
                json.len()
            )));
        }
        let unparsed: UnparsedRequest<'_> = serde_json::from_slice(json)
            .map_err(|error| Error::wire(format!("invalid batch request: {error}")))?;
        let UnparsedRequest {
            pipeline,
            split,
            seed,
            epoch,
            on_error,
            order,
            compression,
            table,
            cache,
            columns,
            presign,
            samples,
        } = unparsed;
        let pipeline = parse_pipeline(pipeline, models)?;
        if samples.is_empty() || samples.len() > max_samples {
            return Err(Error::wire(format!(
                "invalid batch request: expected 1 to {max_samples} samples, found {}",
                samples.len()
            )));
        }
        pipeline.check_split(split)?;
        check_columns(&columns)?;
        if table.is_some() {
            check_table(&pipeline, split, &samples)?;
        }
        presign.as_deref().map_or(Ok(()), check_presign)?;
        for (index, sample) in samples.iter().enumerate() {
            sample
                .check()
                .and_then(|()| check_signature(sample, presign.is_some()))
                .and_then(|()| check_number_of_columns(sample, columns.len()))
                .and_then(|()| sample.split.map_or(Ok(()), |split| pipeline.check_split(split)))
                .and_then(|()| sample.max_bytes.map_or(Ok(()), |_| check_whole_object(&pipeline)))
                .map_err(|error| Error::new(error.kind(), format!("sample {index}: {error}")))?;
        }
        Ok(Self {
            pipeline,
            split,
            seed,
            epoch,
            on_error,
            order,
            compression,
            table,
            cache,
            columns,
            presign,
            samples,
        })
    }
}

/// The pipeline from a JSON string with its text, or from the JSON array.
fn parse_pipeline(json: &RawValue, models: &dyn Resolver) -> Result<Pipeline> {
    match json.get().as_bytes().first() {
        Some(b'[') => Pipeline::parse_with(json.get(), models),
        Some(b'"') => {
            let text: String = serde_json::from_str(json.get())
                .map_err(|error| Error::wire(format!("invalid pipeline in the batch request: {error}")))?;
            Pipeline::parse_with(&text, models)
        }
        _ => Err(Error::wire(
            "invalid pipeline in the batch request: expected a string or an array",
        )),
    }
}

/// Checks that a sample has a signature exactly if the request has the parameters for it.
fn check_signature(sample: &BatchSample, is_presigned: bool) -> Result<()> {
    match (&sample.signature, is_presigned) {
        (Some(_), true) | (None, false) => Ok(()),
        (None, true) => Err(Error::wire(
            "missing signature: expected one for each sample, because the request has `presign`",
        )),
        (Some(_), false) => Err(Error::wire(
            "unexpected signature: expected none without `presign` in the request",
        )),
    }
}

/// Checks that a sample has a member or none for each further column of the request, or no columns at all.
fn check_number_of_columns(sample: &BatchSample, expected: usize) -> Result<()> {
    match sample.columns.len() {
        0 => Ok(()),
        found if found == expected => Ok(()),
        found => Err(Error::wire(format!(
            "invalid columns: expected {expected}, as the request has names, or none, found {found}"
        ))),
    }
}

/// Checks that the gateway has the whole object in memory, to send it instead of a value that is too large.
fn check_whole_object(pipeline: &Pipeline) -> Result<()> {
    if pipeline.kinds().iter().any(|kind| matches!(kind, Kind::Table(_))) {
        return Err(Error::wire(
            "max_bytes is not supported for pipelines with tables",
        ));
    }
    Ok(())
}

/// Checks that the tables of all samples can be merged: each one has to be a scan.
fn check_table(pipeline: &Pipeline, split: Split, samples: &[BatchSample]) -> Result<()> {
    let stage = match split {
        Split::Full => pipeline.len(),
        Split::At(stage) => usize::from(stage),
        Split::Smallest => {
            return Err(Error::wire(
                "cannot merge tables: expected the split `full` or a stage, found `smallest`",
            ));
        }
    };
    if !pipeline.is_scan(&(0..stage)) {
        return Err(Error::wire(format!(
            "cannot merge tables: expected `select` or `sql`, followed by `sample` and `each` only, in the first {stage} steps"
        )));
    }
    if let Some(index) = samples.iter().position(|sample| sample.split.is_some()) {
        return Err(Error::wire(format!(
            "cannot merge tables: sample {index} has a split of its own"
        )));
    }
    match samples.iter().position(|sample| sample.member.is_some()) {
        Some(index) => Err(Error::wire(format!(
            "cannot merge tables: sample {index} is a member of a shard, which `table` does not support"
        ))),
        None => Ok(()),
    }
}

//! The JSON body of a batch request.

mod checks;
mod optional_fields;
#[cfg(test)]
mod tests;

use pushdown_wire::{
    BatchSample, CacheHints, Compression, Features, OnError, Order, Split, check_columns, check_presign,
};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use optional_fields::OPTIONAL_FIELDS;

use crate::{Error, MergeRule, Pipeline, Result, pipeline::Resolver};

/// Maximum size of a batch request, decompressed.
pub const MAX_REQUEST_BYTES: usize = 4 << 20;

/// A request for many samples with one pipeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatchRequest {
    /// The pipeline. Parsed from text or the JSON array; written as text.
    #[serde(serialize_with = "as_text")]
    pub pipeline: Pipeline,
    /// The split of samples without a split of their own. Default `full`.
    pub split: Split,
    /// Seed of the random steps without a seed argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Epoch, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u32>,
    /// The treatment of failed samples.
    pub on_error: OnError,
    /// The order of the rows.
    pub order: Order,
    /// Compression of the values.
    #[serde(skip_serializing_if = "Compression::is_none")]
    pub compression: Compression,
    /// If present, the answer is one table, merged from the tables of all samples, in the form that `Accept` selects. An error of
    /// a sample fails the whole answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<MergeRule>,
    /// What the reader plans, for the result cache. If present, rows have the column `cache`. For a gateway with the feature
    /// [`CACHE`](Features::CACHE).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheHints>,
    /// Names of the further columns of samples that are members of shards, at most 16. Rows have a column for each of them. For a
    /// gateway with the feature [`MEMBERS`](Features::MEMBERS).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// The signing parameters that all samples share: a presigned query without its signature. `None` for a signed batch, whose
    /// samples have no signatures. For a gateway with the feature [`SIGNED_BATCHES`](Features::SIGNED_BATCHES).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presign: Option<String>,
    /// The samples, at least one.
    pub samples: Vec<BatchSample>,
}

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
    /// A request of presigned samples with the defaults: the whole pipeline, errors as rows, rows in order.
    pub fn new(pipeline: Pipeline, presign: impl Into<String>, samples: Vec<BatchSample>) -> Self {
        Self {
            presign: Some(presign.into()),
            ..Self::for_signed_batch(pipeline, samples)
        }
    }

    /// The same for samples without signatures: the body of a signed batch.
    pub fn for_signed_batch(pipeline: Pipeline, samples: Vec<BatchSample>) -> Self {
        Self {
            pipeline,
            split: Split::default(),
            seed: None,
            epoch: None,
            on_error: OnError::default(),
            order: Order::default(),
            compression: Compression::default(),
            table: None,
            cache: None,
            columns: Vec::new(),
            presign: None,
            samples,
        }
    }

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
            checks::table(&pipeline, split, &samples, &columns)?;
        }
        presign.as_deref().map_or(Ok(()), check_presign)?;
        for (index, sample) in samples.iter().enumerate() {
            sample
                .check()
                .and_then(|()| checks::signature(sample, presign.is_some()))
                .and_then(|()| checks::number_of_columns(sample, columns.len()))
                .and_then(|()| sample.split.map_or(Ok(()), |split| pipeline.check_split(split)))
                .and_then(|()| {
                    sample
                        .max_bytes
                        .map_or(Ok(()), |_| checks::whole_object(&pipeline))
                })
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

    /// The request as JSON, with all fields.
    ///
    /// # Errors
    /// [`Internal`](crate::ErrorKind::Internal) for a bug.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        self.to_json_for(&Features::all())
    }

    /// The request as JSON for a gateway with these features: without fields newer than version 0.1.0 that it does not know, which
    /// it would refuse. Members stay: a sample without them would be another one.
    ///
    /// # Errors
    /// [`Internal`](crate::ErrorKind::Internal) for a bug.
    pub fn to_json_for(&self, features: &Features) -> Result<Vec<u8>> {
        let optional = if self.has_optional_fields() {
            OPTIONAL_FIELDS
        } else {
            &[]
        };
        optional_fields::to_json(self, optional, features)
            .map_err(|error| Error::internal(format!("cannot write the batch request: {error}")))
    }

    /// Whether any of [`OPTIONAL_FIELDS`] is present.
    fn has_optional_fields(&self) -> bool {
        self.cache.is_some() || self.samples.iter().any(|sample| sample.etag.is_some())
    }

    /// The split of a sample: its own, or that of the request.
    pub fn split_of(&self, sample: &BatchSample) -> Split {
        sample.split.unwrap_or(self.split)
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

fn as_text<S: Serializer>(pipeline: &Pipeline, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(pipeline)
}

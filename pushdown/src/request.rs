//! The JSON body of a batch request.

mod checks;
mod optional_fields;
mod parse;
mod part;
#[cfg(test)]
mod tests;

use std::fmt;

use pushdown_wire::{
    BatchSample, CacheHints, Compression, Demand, Features, OnError, Order, Pin, Split, StoreEndpoint,
};
use serde::{Serialize, Serializer};

use optional_fields::OPTIONAL_FIELDS;
pub use part::{PartRequest, PartTarget};

use crate::{Error, MergeRule, Pipeline, Result};

/// Maximum size of a batch request, decompressed.
pub const MAX_REQUEST_BYTES: usize = 4 << 20;

/// A request for many samples with one pipeline.
#[derive(Clone, PartialEq, Serialize)]
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
    /// How many cores the reader could use. For a gateway with the feature [`DEMAND`](Features::DEMAND).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demand: Option<Demand>,
    /// Whether the answer has the values. Without them each value is computed or found, and kept in the result cache, and its row says
    /// whether it is there now. For a gateway with the feature [`DELIVER`](Features::DELIVER).
    #[serde(skip_serializing_if = "is_true")]
    pub deliver: bool,
    /// How long values that are not delivered stay in the result cache. For a gateway with the feature [`DELIVER`](Features::DELIVER).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<Pin>,
    /// If present, the values become one object, and the answer is a line of JSON for each [`PartEvent`](crate::wire::PartEvent).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<PartRequest>,
    /// Names of the further columns of samples that are members of shards, at most 16. Rows have a column for each of them. For a
    /// gateway with the feature [`MEMBERS`](Features::MEMBERS).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// The store that the samples are signed for. `None` for the gateway's own store, and in a signed batch. For a gateway with the feature
    /// [`STORES`](Features::STORES).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreEndpoint>,
    /// The signing parameters that all samples share: a presigned query without its signature. `None` for a signed batch, whose
    /// samples have no signatures. For a gateway with the feature [`SIGNED_BATCHES`](Features::SIGNED_BATCHES).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presign: Option<String>,
    /// The samples, at least one.
    pub samples: Vec<BatchSample>,
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
            demand: None,
            deliver: true,
            pin: None,
            part: None,
            columns: Vec::new(),
            store: None,
            presign: None,
            samples,
        }
    }

    /// The request as JSON, with all fields.
    ///
    /// # Errors
    /// [`Internal`](crate::ErrorKind::Internal) for a bug.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        self.to_json_for(&Features::all())
    }

    /// The request as JSON for a gateway with these features: without fields newer than version 0.1.0 that it does not know, which
    /// it would refuse. Members and the store stay: without them the samples would be others.
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
        self.cache.is_some()
            || self.demand.is_some()
            || !self.deliver
            || self.pin.is_some()
            || self.samples.iter().any(|sample| sample.etag.is_some())
    }

    /// The split of a sample: its own, or that of the request.
    pub fn split_of(&self, sample: &BatchSample) -> Split {
        sample.split.unwrap_or(self.split)
    }
}

/// Without `presign`, which is a right to read together with a signature.
impl fmt::Debug for BatchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchRequest")
            .field("pipeline", &self.pipeline)
            .field("split", &self.split)
            .field("seed", &self.seed)
            .field("epoch", &self.epoch)
            .field("store", &self.store)
            .field("samples", &self.samples)
            .finish_non_exhaustive()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_true(value: &bool) -> bool {
    *value
}

fn as_text<S: Serializer>(pipeline: &Pipeline, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(pipeline)
}

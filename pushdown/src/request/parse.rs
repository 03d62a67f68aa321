//! Parses and checks the JSON body of a batch request.

use pushdown_wire::{
    BatchSample, CacheHints, Compression, Demand, OnError, Order, Pin, Split, StoreEndpoint, check_columns,
    check_presign,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BatchRequest, MAX_REQUEST_BYTES, PartRequest, checks, part};
use crate::{Error, MergeRule, Pipeline, Result, pipeline::Resolver};

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
    demand: Option<Demand>,
    #[serde(default = "is_delivered")]
    deliver: bool,
    pin: Option<Pin>,
    part: Option<PartRequest>,
    #[serde(default)]
    columns: Vec<String>,
    store: Option<StoreEndpoint>,
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
        let request = Self {
            pipeline: parse_pipeline(unparsed.pipeline, models)?,
            split: unparsed.split,
            seed: unparsed.seed,
            epoch: unparsed.epoch,
            on_error: unparsed.on_error,
            order: unparsed.order,
            compression: unparsed.compression,
            table: unparsed.table,
            cache: unparsed.cache,
            demand: unparsed.demand,
            deliver: unparsed.deliver,
            pin: unparsed.pin,
            part: unparsed.part,
            columns: unparsed.columns,
            store: unparsed.store,
            presign: unparsed.presign,
            samples: unparsed.samples,
        };
        request.check(max_samples)?;
        Ok(request)
    }

    /// Checks the fields in their relation to each other and to the pipeline.
    fn check(&self, max_samples: usize) -> Result<()> {
        let Self {
            pipeline, samples, ..
        } = self;
        let store = self.store.as_ref();
        if samples.is_empty() || samples.len() > max_samples {
            return Err(Error::wire(format!(
                "invalid batch request: expected 1 to {max_samples} samples, found {}",
                samples.len()
            )));
        }
        pipeline.check_split(self.split)?;
        self.demand.as_ref().map_or(Ok(()), Demand::check)?;
        checks::deliver(self)?;
        check_columns(&self.columns)?;
        if self.table.is_some() {
            checks::table(pipeline, self.split, samples, &self.columns)?;
        }
        checks::store(store, self.presign.is_some())?;
        part::check(self)?;
        self.presign.as_deref().map_or(Ok(()), check_presign)?;
        for (index, sample) in samples.iter().enumerate() {
            sample
                .check(store)
                .and_then(|()| checks::signature(sample, self.presign.is_some()))
                .and_then(|()| checks::number_of_columns(sample, self.columns.len()))
                .and_then(|()| sample.split.map_or(Ok(()), |split| pipeline.check_split(split)))
                .and_then(|()| checks::form(sample, self.split_of(sample)))
                .and_then(|()| {
                    sample
                        .max_bytes
                        .map_or(Ok(()), |_| checks::whole_object(pipeline))
                })
                .map_err(|error| Error::new(error.kind(), format!("sample {index}: {error}")))?;
        }
        Ok(())
    }
}

/// Values are delivered by default.
const fn is_delivered() -> bool {
    true
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

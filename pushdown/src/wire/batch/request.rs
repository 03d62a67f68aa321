//! The body of a batch request, in JSON.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::target::check_presign;
use crate::{Error, Kind, MergeRule, Pipeline, Result, step::model::ModelResolver, wire::Split};

/// The longest batch request in bytes, decompressed.
pub const MAX_REQUEST_BYTES: usize = 4 << 20;

/// Many samples, one pipeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatchRequest {
    /// What to compute. As text or as the JSON array; written as text.
    #[serde(serialize_with = "as_text")]
    pub pipeline: Pipeline,
    /// Where to cut, for samples without their own split. Default `full`.
    pub split: Split,
    /// Seed of the random steps that have none of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Epoch, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u32>,
    /// What becomes of a sample that fails.
    pub on_error: OnError,
    /// The order of the rows.
    pub order: Order,
    /// Whether values are compressed on their way.
    #[serde(skip_serializing_if = "Compression::is_none")]
    pub compression: Compression,
    /// Whether the rows of all samples' tables are wanted as one table, in the form that is accepted. It fails as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<MergeRule>,
    /// The signing parameters that all samples share: a presigned query without its signature.
    pub presign: String,
    /// At least one.
    pub samples: Vec<BatchSample>,
}

/// What becomes of a sample that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// Its row carries the error.
    #[default]
    Row,
    /// The answer is cut off there.
    Fail,
}

/// The order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// That of the samples in the request.
    #[default]
    Request,
    /// As they are ready.
    Any,
}

/// Lossless compression of values on their way.
///
/// Features behind a rectifier are half zeros; photos, and most u8 tensors, do not shrink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// As they are.
    #[default]
    None,
    /// Buffers of the Arrow stream as LZ4 frames.
    Lz4,
    /// Buffers of a table's Arrow stream as Zstandard frames: fewer bytes, by more work. Values of a batch answer travel as
    /// LZ4 all the same, of which a reader knows what it inflates to at most.
    Zstd,
}

impl Compression {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde takes")]
    const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// One sample of a batch request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchSample {
    /// `/bucket/key`, percent-encoded as it was signed.
    pub path: String,
    /// `X-Amz-Signature`: 64 lower-case hex digits.
    pub signature: String,
    /// Where to cut, for this sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// The most bytes of its value, where no one knows them beforehand: the object comes as it is in place of a larger one, at
    /// stage 0. Goes with steps that take the object whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Name within a shard object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// `versionId`, percent-encoded as it was signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The request before its pipeline is parsed, so that a fault in it keeps its kind and position.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unparsed<'a> {
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
    presign: String,
    samples: Vec<BatchSample>,
}

impl BatchRequest {
    /// A request with the defaults: the whole pipeline, errors as rows, in order.
    pub fn new(pipeline: Pipeline, presign: impl Into<String>, samples: Vec<BatchSample>) -> Self {
        Self {
            pipeline,
            split: Split::default(),
            seed: None,
            epoch: None,
            on_error: OnError::default(),
            order: Order::default(),
            compression: Compression::default(),
            table: None,
            presign: presign.into(),
            samples,
        }
    }

    /// Parses and checks a request of at most `max_samples` samples. What a sample's split needs (a seed, say) is
    /// not checked here: a split may depend on the object.
    ///
    /// # Errors
    /// [`InvalidPipeline`](crate::ErrorKind::InvalidPipeline) with the position in the pipeline;
    /// [`TooLarge`](crate::ErrorKind::TooLarge) past [`MAX_REQUEST_BYTES`];
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) for everything else, a sample's fault with its index.
    pub fn parse(json: &[u8], max_samples: usize, models: &dyn ModelResolver) -> Result<Self> {
        if json.len() > MAX_REQUEST_BYTES {
            return Err(Error::too_large(format!(
                "a batch request of {} bytes is more than the limit of {MAX_REQUEST_BYTES}",
                json.len()
            )));
        }
        let unparsed: Unparsed<'_> = serde_json::from_slice(json)
            .map_err(|error| Error::wire(format!("the batch request: {error}")))?;
        let Unparsed {
            pipeline,
            split,
            seed,
            epoch,
            on_error,
            order,
            compression,
            table,
            presign,
            samples,
        } = unparsed;
        let pipeline = parse_pipeline(pipeline, models)?;
        if samples.is_empty() || samples.len() > max_samples {
            return Err(Error::wire(format!(
                "found {} samples, expected 1 to {max_samples}",
                samples.len()
            )));
        }
        split.check(&pipeline)?;
        if table.is_some() {
            check_table(&pipeline, split, &samples)?;
        }
        check_presign(&presign)?;
        for (index, sample) in samples.iter().enumerate() {
            sample
                .check()
                .and_then(|()| sample.split.map_or(Ok(()), |split| split.check(&pipeline)))
                .and_then(|()| sample.max_bytes.map_or(Ok(()), |_| check_whole(&pipeline)))
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
            presign,
            samples,
        })
    }

    /// The request as JSON.
    ///
    /// # Errors
    /// [`Internal`](crate::ErrorKind::Internal), for a defect.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|error| Error::internal(format!("the batch request: {error}")))
    }

    /// The split of a sample: its own, or the request's.
    pub fn split_of(&self, sample: &BatchSample) -> Split {
        sample.split.unwrap_or(self.split)
    }
}

impl BatchSample {
    /// A sample that is a whole object in its current version.
    pub fn new(path: impl Into<String>, signature: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            signature: signature.into(),
            split: None,
            max_bytes: None,
            member: None,
            version: None,
        }
    }
}

/// The pipeline from a JSON string with its text, or from the JSON array.
fn parse_pipeline(json: &RawValue, models: &dyn ModelResolver) -> Result<Pipeline> {
    match json.get().as_bytes().first() {
        Some(b'[') => Pipeline::parse_with(json.get(), models),
        Some(b'"') => {
            let text: String = serde_json::from_str(json.get())
                .map_err(|error| Error::wire(format!("the batch request's pipeline: {error}")))?;
            Pipeline::parse_with(&text, models)
        }
        _ => Err(Error::wire(
            "the batch request's pipeline is neither a string nor an array",
        )),
    }
}

/// In place of a value that is too large its object is sent, which is there only where steps take it whole.
fn check_whole(pipeline: &Pipeline) -> Result<()> {
    if pipeline.kinds().iter().any(|kind| matches!(kind, Kind::Table(_))) {
        return Err(Error::wire(
            "found max_bytes with a pipeline that makes a table, expected it with steps that take the object whole",
        ));
    }
    Ok(())
}

/// One table is made of whole tables, which flow.
fn check_table(pipeline: &Pipeline, split: Split, samples: &[BatchSample]) -> Result<()> {
    let stage = match split {
        Split::Full => pipeline.len(),
        Split::At(stage) => usize::from(stage),
        Split::Smallest => {
            return Err(Error::wire(
                "one table has one split: found `smallest`, expected full or a stage",
            ));
        }
    };
    if !pipeline.is_scan(&(0..stage)) {
        return Err(Error::wire(format!(
            "one table is made of objects' rows, found a pipeline that makes none in {stage} steps: expected `select` or `sql`, \
             and then `sample` and `each` alone"
        )));
    }
    match samples.iter().position(|sample| sample.split.is_some()) {
        Some(index) => Err(Error::wire(format!(
            "sample {index}: one table has one split, found one of its own"
        ))),
        None => Ok(()),
    }
}

fn as_text<S: Serializer>(pipeline: &Pipeline, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(pipeline)
}

//! The body of a batch request, in JSON.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::target::check_presign;
use crate::{Error, Pipeline, Result, wire::Split};

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
    pub fn parse(json: &[u8], max_samples: usize) -> Result<Self> {
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
            presign,
            samples,
        } = unparsed;
        let pipeline = parse_pipeline(pipeline)?;
        if samples.is_empty() || samples.len() > max_samples {
            return Err(Error::wire(format!(
                "found {} samples, expected 1 to {max_samples}",
                samples.len()
            )));
        }
        split.check(&pipeline)?;
        check_presign(&presign)?;
        for (index, sample) in samples.iter().enumerate() {
            sample
                .check()
                .and_then(|()| sample.split.map_or(Ok(()), |split| split.check(&pipeline)))
                .map_err(|error| Error::new(error.kind(), format!("sample {index}: {error}")))?;
        }
        Ok(Self {
            pipeline,
            split,
            seed,
            epoch,
            on_error,
            order,
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
            member: None,
            version: None,
        }
    }
}

/// The pipeline from a JSON string with its text, or from the JSON array.
fn parse_pipeline(json: &RawValue) -> Result<Pipeline> {
    match json.get().as_bytes().first() {
        Some(b'[') => Pipeline::parse(json.get()),
        Some(b'"') => {
            let text: String = serde_json::from_str(json.get())
                .map_err(|error| Error::wire(format!("the batch request's pipeline: {error}")))?;
            Pipeline::parse(&text)
        }
        _ => Err(Error::wire(
            "the batch request's pipeline is neither a string nor an array",
        )),
    }
}

fn as_text<S: Serializer>(pipeline: &Pipeline, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(pipeline)
}

#[cfg(test)]
mod tests {
    use super::{super::PRESIGN, *};
    use crate::ErrorKind;

    type Change = fn(&mut serde_json::Value);

    fn request() -> BatchRequest {
        let pipeline = Pipeline::parse("decode | resize(8, 8) | to_float").unwrap();
        let samples = vec![BatchSample::new("/b/k%201.jpg", "0f".repeat(32)); 3];
        BatchRequest::new(pipeline, PRESIGN, samples)
    }

    /// The error of a request with one thing changed.
    fn fault(change: impl FnOnce(&mut serde_json::Value)) -> Error {
        let mut json = serde_json::to_value(request()).unwrap();
        change(&mut json);
        BatchRequest::parse(json.to_string().as_bytes(), 4).unwrap_err()
    }

    #[test]
    fn reads_back_what_it_wrote() {
        let mut request = request();
        assert_eq!(
            BatchRequest::parse(&request.to_json().unwrap(), 3).unwrap(),
            request
        );
        request.split = Split::Smallest;
        request.seed = Some(u64::MAX);
        request.epoch = Some(3);
        request.on_error = OnError::Fail;
        request.order = Order::Any;
        request.samples[1].split = Some(Split::At(2));
        request.samples[1].member = Some("a.jpg".to_owned());
        request.samples[2].version = Some("v1".to_owned());
        assert_eq!(
            BatchRequest::parse(&request.to_json().unwrap(), 3).unwrap(),
            request
        );
        assert_eq!(request.split_of(&request.samples[0]), Split::Smallest);
        assert_eq!(request.split_of(&request.samples[1]), Split::At(2));
    }

    #[test]
    fn takes_the_documented_form() {
        let json = format!(
            r#"{{"pipeline": [{{"step": "decode"}}], "split": "full", "on_error": "row", "order": "any",
            "presign": "{PRESIGN}", "samples": [{{"path": "/b/k", "signature": "{}", "split": 1}}]}}"#,
            "0f".repeat(32)
        );
        let request = BatchRequest::parse(json.as_bytes(), 4096).unwrap();
        assert_eq!(request.pipeline.to_string(), "decode");
        assert_eq!((request.order, request.on_error), (Order::Any, OnError::Row));
        assert_eq!((request.seed, request.epoch), (None, None));
    }

    #[test]
    fn a_pipelines_fault_keeps_kind_and_position() {
        let error = fault(|json| json["pipeline"] = "decode | rezise(8)".into());
        assert_eq!(
            (error.kind(), error.position()),
            (ErrorKind::InvalidPipeline, Some(9))
        );
        let error = fault(|json| json["pipeline"] = serde_json::json!([{"step": "to_float"}]));
        assert_eq!(
            (error.kind(), error.position()),
            (ErrorKind::InvalidPipeline, Some(0))
        );
    }

    #[test]
    fn refuses_the_rest_with_a_reason() {
        let faults: [(Change, &str); 12] = [
            (
                |json| json["pipelines"] = "decode".into(),
                "unknown field `pipelines`",
            ),
            (
                |json| json["samples"][0]["key"] = "k".into(),
                "unknown field `key`",
            ),
            (
                |json| json["pipeline"] = 1.into(),
                "neither a string nor an array",
            ),
            (|json| json["split"] = 4.into(), "found split 4, expected 0 to 3"),
            (|json| json["split"] = "half".into(), "found split \"half\""),
            (
                |json| json["samples"][2]["split"] = 4.into(),
                "sample 2: found split 4",
            ),
            (
                |json| json["samples"] = serde_json::json!([]),
                "found 0 samples, expected 1 to 4",
            ),
            (
                |json| json["samples"][1]["path"] = "/b".into(),
                "sample 1: found path",
            ),
            (|json| json["presign"] = "acl".into(), "found \"acl\" in presign"),
            (
                |json| json["on_error"] = "raise".into(),
                "unknown variant `raise`",
            ),
            (|json| json["seed"] = (-1).into(), "invalid value"),
            (|json| json["epoch"] = 4_294_967_296_u64.into(), "invalid value"),
        ];
        for (change, expected) in faults {
            let error = fault(change);
            assert_eq!(error.kind(), ErrorKind::InvalidWire, "{error}");
            assert!(
                error.to_string().contains(expected),
                "{error}; expected {expected}"
            );
        }
        let error = BatchRequest::parse(&request().to_json().unwrap(), 2).unwrap_err();
        assert!(
            error.to_string().contains("found 3 samples, expected 1 to 2"),
            "{error}"
        );
    }

    #[test]
    fn hostile_json_is_an_error() {
        for json in ["", "null", "[]", "{}", "{\"pipeline\":", "\u{0}"] {
            assert_eq!(
                BatchRequest::parse(json.as_bytes(), 1).unwrap_err().kind(),
                ErrorKind::InvalidWire,
                "{json}"
            );
        }
        let deep = format!("{{\"pipeline\": {}", "[".repeat(1 << 20));
        assert_eq!(
            BatchRequest::parse(deep.as_bytes(), 1).unwrap_err().kind(),
            ErrorKind::InvalidWire
        );
        let long = vec![b' '; MAX_REQUEST_BYTES + 1];
        assert_eq!(
            BatchRequest::parse(&long, 1).unwrap_err().kind(),
            ErrorKind::TooLarge
        );
    }
}

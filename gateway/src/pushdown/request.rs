//! A GET or HEAD with a pipeline, read and checked before anything is fetched.

use std::{str::FromStr, sync::Arc};

use http::{HeaderName, Method, header, request::Parts};
use percent_encoding::percent_decode_str;
use pushdown::{
    BytesKind, Kind, Pipeline,
    step::model::ModelResolver,
    wire::{self, BatchRequest, Split},
};

use crate::{
    compute::{Standing, Tenant},
    error::{Error, ErrorKind, Result},
    s3::{query::values, sign::Signature},
};

/// What to run, and on which sample.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) split: Split,
    /// The most bytes of the value: the object comes in place of a larger one.
    pub(super) max_bytes: Option<u64>,
    pub(super) seed: Option<u64>,
    pub(super) epoch: Option<u32>,
    /// The percent-decoded key, then `\0` and the member.
    pub(super) sample_id: Vec<u8>,
    /// Who pays for it, once the store has accepted the signature, and where it stands among what they asked for.
    pub(super) standing: Standing,
}

/// Parameters that make a GET of an object something else than its content.
const SUB_RESOURCES: [&str; 12] = [
    "acl",
    "annotation",
    "attributes",
    "encryption",
    "legal-hold",
    "object-lock",
    "retention",
    "select",
    "tagging",
    "torrent",
    "uploadId",
    "uploads",
];

/// Headers that would make the store answer with something else than the whole object.
const PARTIAL: [HeaderName; 4] = [
    header::RANGE,
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
];

impl Job {
    /// Reads the pipeline request in `parts`.
    pub(super) fn of(parts: &Parts, models: &dyn ModelResolver) -> Result<Self> {
        if parts.method != Method::GET && parts.method != Method::HEAD {
            return Err(invalid(format!(
                "a pipeline goes with GET or HEAD of an object, found {}",
                parts.method
            )));
        }
        let key = parts
            .uri
            .path()
            .strip_prefix('/')
            .and_then(|path| path.split_once('/'))
            .map(|(_, key)| key);
        if key.is_none_or(str::is_empty) {
            return Err(invalid(
                "a pipeline goes with an object, found no key: expected /bucket/key",
            ));
        }
        let query = parts.uri.query().unwrap_or_default();
        if let Some(name) = SUB_RESOURCES
            .into_iter()
            .find(|name| values(query, name).next().is_some())
        {
            return Err(invalid(format!(
                "a pipeline goes with an object's content, found the sub-resource `{name}`"
            )));
        }
        refuse_signed_parts(parts, query)?;

        let text =
            value(parts, query, wire::header::PIPELINE)?.ok_or_else(|| invalid("the pipeline is missing"))?;
        let pipeline = Pipeline::parse_with(&text, models)?;
        let split = parsed(
            parts,
            query,
            wire::header::SPLIT,
            "full, smallest or the number of a stage",
        )?;
        Ok(Self {
            pipeline: Arc::new(pipeline),
            split: split.unwrap_or(Split::Full),
            max_bytes: None,
            seed: parsed(parts, query, wire::header::SEED, "a whole number from 0")?,
            epoch: parsed(parts, query, wire::header::EPOCH, "a whole number from 0")?,
            sample_id: wire::sample_id(parts.uri.path(), None),
            standing: Tenant::of(Signature::of(parts).access_key()).now(),
        })
    }
}

impl Job {
    /// What a batch request asks of one of its samples. The pipeline is the request's.
    pub(super) fn of_sample(
        request: &BatchRequest,
        index: usize,
        pipeline: &Arc<Pipeline>,
        standing: Standing,
    ) -> Self {
        let sample = &request.samples[index];
        Self {
            pipeline: Arc::clone(pipeline),
            split: request.split_of(sample),
            max_bytes: sample.max_bytes,
            seed: request.seed,
            epoch: request.epoch,
            sample_id: sample.id(),
            standing,
        }
    }

    /// The stage to answer with, for an object of which something is known: 0 where its value is known to be too large.
    pub(super) fn stage(&self, object: &BytesKind) -> Result<usize> {
        let stage = self.split.resolve(&self.pipeline, object)?;
        if self.max_bytes.is_none() {
            return Ok(stage);
        }
        let kinds = self.pipeline.kinds_for(&Kind::Bytes(*object))?;
        let known = kinds.get(stage).and_then(Kind::bytes);
        Ok(if known.is_some_and(|bytes| self.is_too_large(bytes)) {
            0
        } else {
            stage
        })
    }

    /// Whether the object is to come in place of a value of so many bytes.
    pub(super) fn is_too_large(&self, bytes: u64) -> bool {
        self.max_bytes.is_some_and(|most| bytes > most)
    }

    /// The stage to answer with, where rows flow from the object to it; with `smallest`, if that stage is the smallest.
    pub(super) fn scan(&self) -> Option<usize> {
        let stage = match self.split {
            Split::At(stage) => usize::from(stage),
            Split::Full | Split::Smallest => self.pipeline.len(),
        };
        self.pipeline.is_scan(&(0..stage)).then_some(stage)
    }
}

/// A part of an object cannot be decoded, and what is signed cannot be taken away.
fn refuse_signed_parts(parts: &Parts, query: &str) -> Result<()> {
    let signature = Signature::of(parts);
    if let Some(name) = PARTIAL
        .iter()
        .find(|name| parts.headers.contains_key(*name) && signature.signs(name))
    {
        return Err(invalid(format!(
            "{name} is signed, so the store would apply it to the stored object, and a pipeline needs the whole \
             object; send {name} unsigned to address the result"
        )));
    }
    if values(query, "partNumber").next().is_some() {
        return Err(invalid(
            "partNumber asks for a part of the stored object, and a pipeline needs the whole object",
        ));
    }
    Ok(())
}

/// A setting that stands in a header or in a query parameter of the same name, once.
fn value(parts: &Parts, query: &str, name: &'static str) -> Result<Option<String>> {
    let headers = parts.headers.get_all(name).iter().map(|value| {
        value.to_str().map(str::to_owned).map_err(|_| {
            invalid(format!(
                "the header {name} is not ASCII; write other characters as \\u{{..}} in a string"
            ))
        })
    });
    let queries = values(query, name).map(|value| {
        percent_decode_str(&value.replace('+', " "))
            .decode_utf8()
            .map(std::borrow::Cow::into_owned)
            .map_err(|_| invalid(format!("the parameter {name} is not UTF-8")))
    });
    let mut values = headers.chain(queries);
    let first = values.next().transpose()?;
    match values.next() {
        Some(_) => Err(invalid(format!(
            "found {name} more than once, expected it once, as a header or in the query"
        ))),
        None => Ok(first),
    }
}

fn parsed<T: FromStr>(parts: &Parts, query: &str, name: &'static str, expected: &str) -> Result<Option<T>> {
    value(parts, query, name)?
        .map(|text| {
            text.trim().parse().map_err(|_| {
                Error::new(
                    ErrorKind::InvalidArgument,
                    format!("{name} is `{text}`, expected {expected}"),
                )
            })
        })
        .transpose()
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidRequest, message)
}

#[cfg(test)]
mod tests;

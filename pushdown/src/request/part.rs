//! The part of a data set that a batch request asks a gateway to write: one object with the values of all its samples.

use pushdown_part::{Label, LabelType, PartFormat, PartSpec};
use pushdown_wire::{BatchSample, OnError, Order, Split, StoreEndpoint};
use serde::{Deserialize, Serialize};

use super::{BatchRequest, checks};
use crate::{Error, Kind, Result};

/// Longest query of a presigned PUT in bytes: session tokens have up to 4 KiB.
const MAX_QUERY_BYTES: usize = 16 * 1024;

/// Asks for the values of a batch as one object of a store, instead of an answer with them. For a gateway with the feature
/// [`PARTS`](crate::wire::Features::PARTS).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartRequest {
    /// The format of the object.
    pub format: PartFormat,
    /// What the keys of all samples begin with, percent-decoded. The names of samples in the part are the rest of their keys.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// The type of labels, if the samples have any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<LabelType>,
    /// The labels, one for each sample of the request. Empty without `label`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
    /// The [`Engine`](crate::Engine) that computes the values, as text: a gateway with another one refuses. Without it, any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Where to write it. Without a target nothing is written: the answer says how large the part would be, and how long its steps took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<PartTarget>,
}

/// The object that a part becomes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartTarget {
    /// The store, if it is not the gateway's own. As [`BatchRequest::store`], only with `query`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreEndpoint>,
    /// `/bucket/key`, percent-encoded as signed.
    pub path: String,
    /// The query of the presigned PUT, with its signature. It signs `host` only, and an unsigned payload. `None` in a signed batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
}

/// Without the query, which is a right to write.
impl std::fmt::Debug for PartTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartTarget")
            .field("store", &self.store)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl PartTarget {
    /// The request target of the PUT: equal to the signed one byte for byte.
    pub fn request_target(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    fn check(&self, is_presigned: bool) -> Result<()> {
        BatchSample::for_signed_batch(self.path.as_str()).check(self.store.as_ref())?;
        checks::store(self.store.as_ref(), self.query.is_some())?;
        let is_query = |byte: u8| byte.is_ascii_graphic() && byte != b'#' && byte != b'?';
        match &self.query {
            None if is_presigned => Err(Error::wire(
                "missing query: expected that of a presigned PUT, because the request has `presign`",
            )),
            Some(_) if !is_presigned => Err(Error::wire(
                "unexpected query: expected none without `presign` in the request",
            )),
            Some(query) if query.len() > MAX_QUERY_BYTES || !query.bytes().all(is_query) => {
                Err(Error::wire(format!(
                    "invalid query: expected the percent-encoded query of a presigned PUT, of at most {MAX_QUERY_BYTES} bytes"
                )))
            }
            _ => Ok(()),
        }
    }
}

impl BatchRequest {
    /// What the part contains, if the request asks for one.
    ///
    /// # Errors
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) for values that its format cannot hold.
    pub fn part_spec(&self) -> Result<Option<PartSpec>> {
        let Some(part) = &self.part else {
            return Ok(None);
        };
        let kind = self.pipeline.kinds().last().cloned();
        let spec = PartSpec {
            format: part.format,
            kind: kind.unwrap_or_else(Kind::object),
            label: part.label.clone(),
            columns: self.columns.clone(),
        };
        spec.check()?;
        Ok(Some(spec))
    }
}

/// Checks that the request asks for nothing that a part does not have.
pub(super) fn check(request: &BatchRequest) -> Result<()> {
    let Some(part) = &request.part else {
        return Ok(());
    };
    let has_own = |has: fn(&BatchSample) -> bool| request.samples.iter().any(has);
    let unsupported = [
        ("table", request.table.is_some()),
        ("on_error", request.on_error != OnError::Row),
        ("order", request.order != Order::Request),
        ("compression", !request.compression.is_none()),
        ("deliver", !request.deliver),
        (
            "split",
            request.split != Split::Full || has_own(|sample| sample.split.is_some()),
        ),
        ("form", has_own(|sample| sample.form.is_some())),
        ("max_bytes", has_own(|sample| sample.max_bytes.is_some())),
    ];
    if let Some((name, _)) = unsupported.iter().find(|(_, is_present)| *is_present) {
        return Err(Error::wire(format!(
            "unexpected {name}: expected none with `part`, which has the values of the whole pipeline in their order"
        )));
    }
    if request.samples.iter().any(|sample| sample.etag.is_none()) {
        return Err(Error::wire(
            "missing etag: expected that of each sample, because a part is made of certain versions of its objects",
        ));
    }
    let expected = if part.label.is_some() {
        request.samples.len()
    } else {
        0
    };
    if part.labels.len() != expected {
        return Err(Error::wire(format!(
            "invalid labels: expected {expected}, found {}; a part with `label` has one for each sample",
            part.labels.len()
        )));
    }
    if let Some(target) = &part.target {
        target
            .check(request.presign.is_some())
            .map_err(|error| Error::new(error.kind(), format!("target of the part: {error}")))?;
    }
    request.part_spec().map(drop)
}

#[cfg(test)]
mod tests;

//! One sample of a batch request, and the options of a request that do not depend on its pipeline.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ColumnMember, PLAIN_HEADER_BYTES, member};
use crate::{ObjectForm, Split};

/// Maximum length of an ETag. Those of stores have 34 to 40 bytes.
const MAX_ETAG_BYTES: usize = 1024;

/// The treatment of failed samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// The row of the sample has the error.
    #[default]
    Row,
    /// The answer is truncated at the sample.
    Fail,
}

/// The order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The order of the samples in the request.
    #[default]
    Request,
    /// The order in which they are ready.
    Any,
}

/// Lossless compression of values on the wire.
///
/// Features after a rectifier are half zeros and shrink; photos and most u8 tensors do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// LZ4 frames of the buffers of the Arrow stream.
    Lz4,
    /// Zstandard frames of the buffers of the Arrow stream of a table: fewer bytes for more CPU time. Values of a batch answer use
    /// LZ4 instead, since a reader can bound its decompressed size.
    Zstd,
}

impl Compression {
    /// Whether values are not compressed.
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// One sample of a batch request.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchSample {
    /// `/bucket/key`, percent-encoded as signed.
    pub path: String,
    /// `X-Amz-Signature`: 64 lower-case hex digits. `None` in a signed batch: see [`SIGNED_BATCHES`](crate::Features::SIGNED_BATCHES).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The split of this sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// The form of the stored object, for a sample of the split 0. For a gateway with the feature
    /// [`CROPPED_JPEG`](crate::Features::CROPPED_JPEG).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<ObjectForm>,
    /// Maximum size of the value, for a stage of unknown size. If the value is larger, the answer has the object instead, at
    /// stage 0. Not supported for pipelines with tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// The name of a member, if the object is a shard and the sample is a file in it. It requires `offset`, `size` and `etag`. For
    /// a gateway with the feature [`MEMBERS`](crate::Features::MEMBERS).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Offset of the first byte of the member's entry in the shard: of its first header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Bytes of the member's content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Bytes of the member's entry before its content. Default [`PLAIN_HEADER_BYTES`].
    #[serde(
        default = "member::plain_header_bytes",
        skip_serializing_if = "member::is_plain"
    )]
    pub header_size: u32,
    /// The members of the same shard whose contents are the further columns of the sample: one for each name in the `columns` of the
    /// request, or `None` where the sample has none. Empty if the request has no columns, or the sample none of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Option<ColumnMember>>,
    /// `versionId`, percent-encoded as signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The object's ETag from a listing, with its quotation marks. Only a hint where the result cache may have a value: the store
    /// decides which object this is. For a gateway with the feature [`CACHE`](crate::Features::CACHE).
    ///
    /// With a member it is a condition: the version of the shard in which the member has this place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

impl BatchSample {
    /// A presigned sample that is a whole object in its current version.
    pub fn new(path: impl Into<String>, signature: impl Into<String>) -> Self {
        Self {
            signature: Some(signature.into()),
            ..Self::for_signed_batch(path)
        }
    }

    /// The same without a signature, for a signed batch.
    pub fn for_signed_batch(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            signature: None,
            split: None,
            form: None,
            max_bytes: None,
            member: None,
            offset: None,
            size: None,
            header_size: PLAIN_HEADER_BYTES,
            columns: Vec::new(),
            version: None,
            etag: None,
        }
    }
}

/// Without the signature.
impl fmt::Debug for BatchSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchSample")
            .field("path", &self.path)
            .field("version", &self.version)
            .field("split", &self.split)
            .field("member", &self.member)
            .field("offset", &self.offset)
            .field("size", &self.size)
            .field("etag", &self.etag)
            .finish_non_exhaustive()
    }
}

/// Whether a listed ETag can be the `etag` of a [`BatchSample`]: 1 to 1,024 characters of visible ASCII.
pub fn is_etag_hint(etag: &str) -> bool {
    (1..=MAX_ETAG_BYTES).contains(&etag.len()) && etag.bytes().all(|byte| byte.is_ascii_graphic())
}

//! The table of S3 operations.

use http::Method;

use super::access;
use super::parameters::Parameters;
use crate::access::Access;
use crate::access::Action::{self, Delete, List, Read, Versions, Write};
use crate::s3::RequestAddress;
use Scope::{Bucket, EachKey, Object, Prefix, Service};

/// What an operation acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// All buckets.
    Service,
    /// A bucket as a whole.
    Bucket,
    /// The keys of a bucket that begin with the parameter `prefix`.
    Prefix,
    /// Keys of a bucket that the body names.
    EachKey,
    /// An object.
    Object,
}

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KnownOperation {
    name: &'static str,
    method: &'static str,
    scope: Scope,
    action: Action,
    /// Parameters that select the operation: all must be sent.
    required: &'static [&'static str],
    /// Parameters that refine it. No others may be sent.
    optional: &'static [&'static str],
}

const VERSION: &str = "versionId";

const READ_PARAMETERS: &[&str] = &[
    VERSION,
    "partNumber",
    "response-cache-control",
    "response-content-disposition",
    "response-content-encoding",
    "response-content-language",
    "response-content-type",
    "response-expires",
];

/// Every other operation needs `admin`.
#[rustfmt::skip]
static OPERATIONS: [KnownOperation; 22] = [
    row("ListBuckets", "GET", Service, List, &[], &["bucket-region", "continuation-token", "max-buckets", "prefix"]),
    row("HeadBucket", "HEAD", Bucket, List, &[], &[]),
    row("GetBucketLocation", "GET", Bucket, List, &["location"], &[]),
    row("ListObjects", "GET", Prefix, List, &[], &["delimiter", "encoding-type", "marker", "max-keys", "prefix"]),
    row("ListObjectsV2", "GET", Prefix, List, &["list-type"], &["continuation-token", "delimiter", "encoding-type", "fetch-owner", "max-keys", "prefix", "start-after"]),
    row("ListObjectVersions", "GET", Prefix, List, &["versions"], &["delimiter", "encoding-type", "key-marker", "max-keys", "prefix", "version-id-marker"]),
    row("ListMultipartUploads", "GET", Prefix, List, &["uploads"], &["delimiter", "encoding-type", "key-marker", "max-uploads", "prefix", "upload-id-marker"]),
    row("DeleteObjects", "POST", EachKey, Delete, &["delete"], &[]),
    row("GetObject", "GET", Object, Read, &[], READ_PARAMETERS),
    row("HeadObject", "HEAD", Object, Read, &[], READ_PARAMETERS),
    row("GetObjectAttributes", "GET", Object, Read, &["attributes"], &[VERSION]),
    row("GetObjectTagging", "GET", Object, Read, &["tagging"], &[VERSION]),
    row("SelectObjectContent", "POST", Object, Read, &["select", "select-type"], &[]),
    row("ListParts", "GET", Object, List, &["uploadId"], &["encoding-type", "max-parts", "part-number-marker"]),
    row("PutObject", "PUT", Object, Write, &[], &[]),
    row("UploadPart", "PUT", Object, Write, &["partNumber", "uploadId"], &[]),
    row("PutObjectTagging", "PUT", Object, Write, &["tagging"], &[VERSION]),
    row("DeleteObjectTagging", "DELETE", Object, Write, &["tagging"], &[VERSION]),
    row("CreateMultipartUpload", "POST", Object, Write, &["uploads"], &[]),
    row("CompleteMultipartUpload", "POST", Object, Write, &["uploadId"], &[]),
    row("AbortMultipartUpload", "DELETE", Object, Write, &["uploadId"], &[]),
    row("DeleteObject", "DELETE", Object, Delete, &[], &[VERSION]),
];

const fn row(
    name: &'static str,
    method: &'static str,
    scope: Scope,
    action: Action,
    required: &'static [&'static str],
    optional: &'static [&'static str],
) -> KnownOperation {
    KnownOperation {
        name,
        method,
        scope,
        action,
        required,
        optional,
    }
}

/// The operation of a request. `None` if the table does not describe the request in full.
pub(super) fn find(
    method: &Method,
    address: &RequestAddress,
    parameters: &Parameters,
) -> Option<&'static KnownOperation> {
    OPERATIONS
        .iter()
        .find(|known| known.matches(method, address, parameters))
}

impl KnownOperation {
    fn matches(&self, method: &Method, address: &RequestAddress, parameters: &Parameters) -> bool {
        let has_scope = match self.scope {
            Service => address.bucket().is_empty() && address.key().is_empty(),
            Bucket | Prefix | EachKey => !address.bucket().is_empty() && address.key().is_empty(),
            Object => !address.bucket().is_empty() && !address.key().is_empty(),
        };
        let is_version_2 = parameters.get("list-type").is_none_or(|version| version == b"2");
        has_scope
            && is_version_2
            && self.method == method.as_str()
            && self.required.iter().all(|name| parameters.get(name).is_some())
            && parameters
                .names()
                .all(|name| self.required.contains(&name) || self.optional.contains(&name))
    }

    /// The name that S3 gives it.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// What it acts on.
    pub(super) fn scope(&self) -> Scope {
        self.scope
    }

    /// Whether it can have a source to copy from.
    pub(super) fn can_copy(&self) -> bool {
        matches!(self.name, "PutObject" | "UploadPart")
    }

    /// What it needs, apart from headers.
    pub(super) fn accesses(&self, address: &RequestAddress, parameters: &Parameters) -> Vec<Access> {
        let prefix = parameters.get("prefix").unwrap_or_default();
        match self.scope {
            EachKey => Vec::new(),
            Prefix => {
                let mut accesses = vec![Access::prefix(self.action, address.bucket(), prefix)];
                if parameters.get("versions").is_some() {
                    accesses.push(Access::prefix(Versions, address.bucket(), prefix));
                }
                accesses
            }
            Service | Bucket | Object => {
                let mut accesses = vec![access(self.action, address)];
                if parameters.get(VERSION).is_some() {
                    accesses.push(access(Versions, address));
                }
                accesses
            }
        }
    }
}

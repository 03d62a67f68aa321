//! Names of the query parameters of a presigned URL, AWS Signature Version 4.

/// The signing algorithm.
pub const ALGORITHM: &str = "X-Amz-Algorithm";
/// Access key, date, region and service: `KEY/date/region/s3/aws4_request`.
pub const CREDENTIAL: &str = "X-Amz-Credential";
/// Time of the signature.
pub const DATE: &str = "X-Amz-Date";
/// Validity in seconds.
pub const EXPIRES: &str = "X-Amz-Expires";
/// Names of the signed headers, separated by semicolons.
pub const SIGNED_HEADERS: &str = "X-Amz-SignedHeaders";
/// Session token of temporary credentials.
pub const SECURITY_TOKEN: &str = "X-Amz-Security-Token";
/// Digest of the body.
pub const CONTENT_SHA256: &str = "X-Amz-Content-Sha256";
/// The signature, in lower-case hex digits.
pub const SIGNATURE: &str = "X-Amz-Signature";

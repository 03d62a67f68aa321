//! What `x-amz-*` headers add to the accesses of a request.

/// Headers with this prefix have a meaning for S3.
pub(super) const PREFIX: &str = "x-amz-";

/// What a header needs beyond the operation itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderEffect {
    /// Nothing.
    None,
    /// `read` on the object that it names.
    CopySource,
    /// `admin`: it changes rights or retention, or is unknown.
    Admin,
}

/// Headers that need nothing beyond their operation.
const HARMLESS: [&str; 39] = [
    // The signature.
    "x-amz-algorithm",
    "x-amz-content-sha256",
    "x-amz-credential",
    "x-amz-date",
    "x-amz-expires",
    "x-amz-security-token",
    "x-amz-signature",
    "x-amz-signedheaders",
    "x-amz-user-agent",
    // The body.
    "x-amz-decoded-content-length",
    "x-amz-sdk-checksum-algorithm",
    "x-amz-te",
    "x-amz-trailer",
    // Conditions.
    "x-amz-copy-source-if-match",
    "x-amz-copy-source-if-modified-since",
    "x-amz-copy-source-if-none-match",
    "x-amz-copy-source-if-unmodified-since",
    "x-amz-expected-bucket-owner",
    "x-amz-if-match-last-modified-time",
    "x-amz-if-match-size",
    "x-amz-request-payer",
    "x-amz-source-expected-bucket-owner",
    // What is read.
    "x-amz-copy-source-range",
    "x-amz-copy-source-server-side-encryption-customer-algorithm",
    "x-amz-copy-source-server-side-encryption-customer-key",
    "x-amz-copy-source-server-side-encryption-customer-key-md5",
    "x-amz-max-parts",
    "x-amz-object-attributes",
    "x-amz-optional-object-attributes",
    "x-amz-part-number-marker",
    // What is written.
    "x-amz-metadata-directive",
    "x-amz-mp-object-size",
    "x-amz-server-side-encryption",
    "x-amz-server-side-encryption-aws-kms-key-id",
    "x-amz-server-side-encryption-bucket-key-enabled",
    "x-amz-server-side-encryption-context",
    "x-amz-storage-class",
    "x-amz-tagging",
    "x-amz-tagging-directive",
];

/// Beginnings of names of headers that need nothing beyond their operation.
const HARMLESS_PREFIXES: [&str; 3] = [
    "x-amz-checksum-",
    "x-amz-meta-",
    "x-amz-server-side-encryption-customer-",
];

/// The effect of a header. `name` is in lower case.
pub(super) fn effect(name: &str) -> HeaderEffect {
    // MinIO unpacks an archive to other keys by a header that looks like metadata.
    let unpacks_archives = name.contains("snowball");
    let is_harmless =
        HARMLESS.contains(&name) || HARMLESS_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    match name {
        "x-amz-copy-source" => HeaderEffect::CopySource,
        _ if is_harmless && !unpacks_archives => HeaderEffect::None,
        _ => HeaderEffect::Admin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_headers_and_those_that_change_rights_need_admin() {
        for name in [
            "x-amz-acl",
            "x-amz-bypass-governance-retention",
            "x-amz-grant-read",
            "x-amz-meta-minio-snowball-prefix",
            "x-amz-meta-snowball-auto-extract",
            "x-amz-mfa",
            "x-amz-object-lock-legal-hold",
            "x-amz-object-lock-mode",
            "x-amz-rename-source",
            "x-amz-website-redirect-location",
            "x-amz-",
            "x-amz-new",
        ] {
            assert_eq!(effect(name), HeaderEffect::Admin, "{name}");
        }
        assert_eq!(effect("x-amz-copy-source"), HeaderEffect::CopySource);
        for name in ["x-amz-date", "x-amz-meta-color", "x-amz-checksum-crc32"] {
            assert_eq!(effect(name), HeaderEffect::None, "{name}");
        }
    }
}

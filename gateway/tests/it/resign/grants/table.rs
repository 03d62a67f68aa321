//! What keys with certain grants may do, and what they may not.

use super::super::Grant;

/// A request, with one more header or with none.
pub(super) struct Call {
    pub(super) method: &'static str,
    pub(super) target: &'static str,
    pub(super) header: Option<(&'static str, &'static str)>,
}

/// The grants of a key, and what it may do with them.
pub(super) struct Row {
    pub(super) grants: &'static [Grant],
    pub(super) denied: &'static [Call],
    pub(super) allowed: &'static [Call],
}

const fn call(method: &'static str, target: &'static str) -> Call {
    Call {
        method,
        target,
        header: None,
    }
}

const fn copy(target: &'static str, source: &'static str) -> Call {
    with("PUT", target, "x-amz-copy-source", source)
}

const fn with(method: &'static str, target: &'static str, name: &'static str, value: &'static str) -> Call {
    Call {
        method,
        target,
        header: Some((name, value)),
    }
}

pub(super) static ROWS: &[Row] = &[
    Row {
        grants: &[],
        denied: &[
            call("GET", "/photos/2024/a"),
            call("HEAD", "/photos/2024/a"),
            call("PUT", "/photos/2024/a"),
            call("DELETE", "/photos/2024/a"),
            call("GET", "/photos/2024/a?versionId=1"),
            call("GET", "/photos?list-type=2"),
            call("HEAD", "/photos"),
            call("GET", "/photos?policy"),
            call("GET", "/"),
        ],
        allowed: &[],
    },
    Row {
        grants: &[Grant::new("photos", "2024/", &["list"])],
        denied: &[
            call("GET", "/photos?list-type=2"),
            call("GET", "/photos?list-type=2&prefix=2024"),
            call("GET", "/photos?list-type=2&prefix=2024-secret%2F"),
            call("GET", "/photos?versions&prefix=2024%2F"),
            call("GET", "/other?list-type=2&prefix=2024%2F"),
            call("GET", "/photos/2024/a"),
        ],
        allowed: &[
            call("GET", "/photos?list-type=2&prefix=2024%2F"),
            call("GET", "/photos?prefix=2024%2Fjune&delimiter=%2F"),
            call("GET", "/photos/2024/a?uploadId=1"),
            call("HEAD", "/photos"),
        ],
    },
    Row {
        grants: &[Grant::new("photos", "2024/", &["read"])],
        denied: &[
            call("GET", "/photos/2024-secret/a"),
            call("GET", "/photos/2024"),
            call("GET", "/photos/2023/a"),
            call("GET", "/photos2/2024/a"),
            call("GET", "/photos/2024/a?versionId=1"),
            call("GET", "/photos/2024/a?acl"),
            call("GET", "/photos/2024/a?unknown"),
            call("PUT", "/photos/2024/a"),
            call("DELETE", "/photos/2024/a"),
            call("GET", "/photos?list-type=2&prefix=2024%2F"),
            copy("/photos/2024/b", "/photos/2024/a"),
        ],
        allowed: &[
            call("GET", "/photos/2024/a"),
            call("HEAD", "/photos/2024/a"),
            call("GET", "/photos/2024/a?tagging"),
            call("GET", "/photos/2024%2Fa"),
            with("GET", "/photos/2024/a", "range", "bytes=0-1"),
        ],
    },
    Row {
        grants: &[Grant::new("photos", "2024/", &["write"])],
        denied: &[
            call("PUT", "/photos/2024-secret/a"),
            call("GET", "/photos/2024/a"),
            call("DELETE", "/photos/2024/a"),
            call("PUT", "/photos/2024/a?acl"),
            call("PUT", "/photos"),
            with("PUT", "/photos/2024/a", "x-amz-acl", "public-read"),
            with("PUT", "/photos/2024/a", "x-amz-unknown", "1"),
            copy("/photos/2024/b", "/photos/2024/a"),
        ],
        allowed: &[
            call("PUT", "/photos/2024/a"),
            call("POST", "/photos/2024/a?uploads"),
            call("PUT", "/photos/2024/a?partNumber=1&uploadId=1"),
            call("DELETE", "/photos/2024/a?uploadId=1"),
            with("PUT", "/photos/2024/a", "x-amz-meta-label", "cat"),
        ],
    },
    Row {
        grants: &[
            Grant::new("photos", "2024/", &["read"]),
            Grant::new("thumbs", "", &["write"]),
        ],
        denied: &[
            copy("/thumbs/a", "/photos/2024-secret/a"),
            copy("/thumbs/a", "photos/2023/a"),
            copy("/thumbs/a", "/photos/2024/a?versionId=1"),
            copy("/thumbs/a?partNumber=1&uploadId=1", "/photos/2024-secret/a"),
            copy("/photos/2024/b", "/photos/2024/a"),
            call("PUT", "/thumbs/a?x-amz-copy-source=%2Fphotos%2F2024-secret%2Fa"),
        ],
        allowed: &[
            copy("/thumbs/a", "/photos/2024/a"),
            copy("/thumbs/a", "photos/2024%2Fa"),
            copy("/thumbs/a?partNumber=1&uploadId=1", "/photos/2024/a"),
        ],
    },
    Row {
        grants: &[Grant::new("photos", "2024/", &["delete"])],
        denied: &[
            call("DELETE", "/photos/2024-secret/a"),
            call("DELETE", "/photos/2024/a?versionId=1"),
            call("DELETE", "/photos"),
            call("PUT", "/photos/2024/a"),
        ],
        allowed: &[call("DELETE", "/photos/2024/a")],
    },
    Row {
        grants: &[Grant::new("photos", "2024/", &["list", "read", "versions"])],
        denied: &[
            call("GET", "/photos?versions"),
            call("GET", "/photos/2023/a?versionId=1"),
            call("DELETE", "/photos/2024/a?versionId=1"),
        ],
        allowed: &[
            call("GET", "/photos/2024/a?versionId=1"),
            call("GET", "/photos?versions&prefix=2024%2F"),
        ],
    },
    Row {
        grants: &[Grant::new("photos", "", &["admin"])],
        denied: &[
            call("GET", "/photos/2024/a"),
            call("PUT", "/photos/2024/a"),
            call("GET", "/other?policy"),
        ],
        allowed: &[
            call("GET", "/photos?policy"),
            call("PUT", "/photos/2024/a?acl"),
            call("DELETE", "/photos"),
        ],
    },
];

use http::{HeaderName, HeaderValue};

use super::*;
use crate::access::Target;

/// The accesses of a request, as in `read bucket/key, versions bucket/key`. A prefix ends with `*`.
fn accesses(method: &str, target: &str, headers: &[(&'static str, &'static str)]) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut map = HeaderMap::new();
    for &(name, value) in headers {
        map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let address = RequestAddress::new(b"gateway", path, &[]).unwrap();
    let operation = Operation::new(&method, &address, &Query::parse(query).unwrap(), &map);
    let texts: Vec<_> = operation.accesses().iter().map(text).collect();
    texts.join(", ")
}

fn text(access: &Access) -> String {
    let target = match access.target() {
        Target::Service => String::new(),
        Target::Bucket { bucket } => format!(" {}", lossy(bucket)),
        Target::Prefix { bucket, prefix } => format!(" {}/{}*", lossy(bucket), lossy(prefix)),
        Target::Object { bucket, key } => format!(" {}/{}", lossy(bucket), lossy(key)),
    };
    format!("{}{target}", access.action())
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn each_operation_needs_its_accesses() {
    let table = [
        // Buckets.
        ("GET", "/", "list"),
        ("GET", "/?max-buckets=2&prefix=a", "list"),
        ("HEAD", "/b", "list b"),
        ("HEAD", "/b/", "list b"),
        ("GET", "/b?location", "list b"),
        ("GET", "/b", "list b/*"),
        (
            "GET",
            "/b?prefix=2024%2F&marker=x&max-keys=9&delimiter=%2F",
            "list b/2024/*",
        ),
        ("GET", "/b?list-type=2&prefix=a+b", "list b/a b*"),
        (
            "GET",
            "/b/?list-type=2&start-after=a&fetch-owner=true",
            "list b/*",
        ),
        ("GET", "/b?versions&prefix=a", "list b/a*, versions b/a*"),
        ("GET", "/b?uploads&prefix=a&max-uploads=1", "list b/a*"),
        ("POST", "/b?delete", ""),
        // Reads.
        ("GET", "/b/k", "read b/k"),
        ("GET", "/b/a%20b//..", "read b/a b//.."),
        ("GET", "/b/k?partNumber=1&response-content-type=a", "read b/k"),
        ("GET", "/b/k?versionId=1", "read b/k, versions b/k"),
        ("HEAD", "/b/k", "read b/k"),
        ("HEAD", "/b/k?versionId=null", "read b/k, versions b/k"),
        ("GET", "/b/k?attributes", "read b/k"),
        ("GET", "/b/k?attributes&versionId=1", "read b/k, versions b/k"),
        ("GET", "/b/k?tagging", "read b/k"),
        ("GET", "/b/k?tagging&versionId=1", "read b/k, versions b/k"),
        ("POST", "/b/k?select&select-type=2", "read b/k"),
        ("GET", "/b/k?uploadId=1&max-parts=2", "list b/k"),
        // Writes.
        ("PUT", "/b/k", "write b/k"),
        ("PUT", "/b/k?partNumber=1&uploadId=1", "write b/k"),
        ("PUT", "/b/k?tagging", "write b/k"),
        ("PUT", "/b/k?tagging&versionId=1", "write b/k, versions b/k"),
        ("DELETE", "/b/k?tagging", "write b/k"),
        ("DELETE", "/b/k?tagging&versionId=1", "write b/k, versions b/k"),
        ("POST", "/b/k?uploads", "write b/k"),
        ("POST", "/b/k?uploadId=1", "write b/k"),
        ("DELETE", "/b/k?uploadId=1", "write b/k"),
        // Deletes.
        ("DELETE", "/b/k", "delete b/k"),
        ("DELETE", "/b/k?versionId=1", "delete b/k, versions b/k"),
        // Presigned, with the name of the operation, or with a pipeline.
        (
            "GET",
            "/b/k?X-Amz-Algorithm=a&X-Amz-Credential=a&X-Amz-Date=a&X-Amz-Expires=1&X-Amz-SignedHeaders=host&X-Amz-Signature=0&x-id=GetObject",
            "read b/k",
        ),
        ("GET", "/b/k?x-pushdown-pipeline=decode", "read b/k"),
    ];
    for (method, target, expected) in table {
        assert_eq!(accesses(method, target, &[]), expected, "{method} {target}");
    }
}

/// Names and values.
type Headers = &'static [(&'static str, &'static str)];

#[test]
fn headers_add_accesses() {
    let table: [(&str, &str, Headers, &str); 15] = [
        (
            "PUT",
            "/b/k",
            &[("x-amz-copy-source", "/s/x%20y")],
            "write b/k, read s/x y",
        ),
        (
            "PUT",
            "/b/k",
            &[("x-amz-copy-source", "s/x?versionId=1")],
            "write b/k, read s/x, versions s/x",
        ),
        (
            "PUT",
            "/b/k?partNumber=1&uploadId=1",
            &[
                ("x-amz-copy-source", "s/x"),
                ("x-amz-copy-source-range", "bytes=0-1"),
            ],
            "write b/k, read s/x",
        ),
        ("PUT", "/b/k?X-Amz-Copy-Source=s%2Fx", &[], "write b/k, read s/x"),
        (
            "PUT",
            "/b/k?x-amz-copy-source=s%2Fx",
            &[("x-amz-copy-source", "s/y")],
            "write b/k, read s/x, read s/y",
        ),
        (
            "PUT",
            "/b/k",
            &[("x-amz-copy-source", "s/x"), ("x-amz-copy-source", "s/y")],
            "write b/k, read s/x, read s/y",
        ),
        (
            "PUT",
            "/b/k",
            &[
                ("x-amz-meta-a", "1"),
                ("x-amz-tagging", "a=b"),
                ("content-type", "a"),
                ("x-minio-a", "1"),
            ],
            "write b/k",
        ),
        // Headers that need `admin`, wherever they stand.
        (
            "PUT",
            "/b/k",
            &[("x-amz-acl", "public-read")],
            "write b/k, admin b/k",
        ),
        ("PUT", "/b/k?x-amz-acl=public-read", &[], "write b/k, admin b/k"),
        (
            "PUT",
            "/b/k",
            &[("x-amz-grant-read", "id=1")],
            "write b/k, admin b/k",
        ),
        (
            "DELETE",
            "/b/k?versionId=1",
            &[("x-amz-bypass-governance-retention", "true")],
            "delete b/k, versions b/k, admin b/k",
        ),
        (
            "POST",
            "/b?delete",
            &[("x-amz-bypass-governance-retention", "true")],
            "admin b",
        ),
        (
            "PUT",
            "/b/k",
            &[("x-amz-copy-source", "arn:aws:s3:r:1:accesspoint/a/object/k")],
            "write b/k, admin b/k",
        ),
        (
            "GET",
            "/b/k",
            &[("x-amz-copy-source", "s/x")],
            "read b/k, admin b/k",
        ),
        (
            "PUT",
            "/b/k?tagging",
            &[("x-amz-copy-source", "s/x")],
            "write b/k, admin b/k",
        ),
    ];
    for (method, target, headers, expected) in table {
        assert_eq!(
            accesses(method, target, headers),
            expected,
            "{method} {target} {headers:?}"
        );
    }
}

#[test]
fn all_else_needs_admin() {
    let on_objects = [
        "acl",
        "legal-hold",
        "retention",
        "torrent",
        "restore",
        "annotation",
        "renameObject",
        "new",
        "acl&tagging",
        "versionId=1&acl",
        "tagging&tagging",
        "Tagging",
        "%74agging&tagging",
        "partNumber=1&new=2",
        "partNumber=1&uploadId=1&tagging",
        "select",
    ];
    for query in on_objects {
        for method in ["GET", "HEAD", "PUT", "POST", "DELETE"] {
            let target = format!("/b/k?{query}");
            assert_eq!(accesses(method, &target, &[]), "admin b/k", "{method} {target}");
        }
    }
    let on_buckets = [
        "accelerate",
        "acl",
        "analytics&id=1",
        "cors",
        "encryption",
        "intelligent-tiering",
        "inventory",
        "lifecycle",
        "logging",
        "metadataConfiguration",
        "metrics",
        "notification",
        "object-lock",
        "ownershipControls",
        "policy",
        "policyStatus",
        "publicAccessBlock",
        "replication",
        "requestPayment",
        "session",
        "tagging",
        "versioning",
        "website",
        "list-type=1",
        "list-type",
        "list-type=2&marker=x",
        "prefix=a&prefix=b",
        "versions&acl",
        "new",
    ];
    for query in on_buckets {
        for method in ["GET", "HEAD", "PUT", "POST", "DELETE"] {
            let target = format!("/b?{query}");
            assert_eq!(accesses(method, &target, &[]), "admin b", "{method} {target}");
        }
    }
    let others = [
        ("PUT", "/b", "admin b"),
        ("DELETE", "/b", "admin b"),
        ("POST", "/b", "admin b"),
        ("POST", "/b/k", "admin b/k"),
        ("PATCH", "/b/k", "admin b/k"),
        ("OPTIONS", "/b/k", "admin b/k"),
        ("NEW", "/b/k", "admin b/k"),
        ("HEAD", "/b/k?tagging", "admin b/k"),
        ("PUT", "/b/k?partNumber=1", "admin b/k"),
        ("PUT", "/b/k?uploadId=1", "admin b/k"),
        ("PUT", "/b/k?versionId=1", "admin b/k"),
        ("HEAD", "/", "admin"),
        ("PUT", "/", "admin"),
        ("GET", "/?events", "admin"),
        ("GET", "//k", "admin"),
    ];
    for (method, target, expected) in others {
        assert_eq!(accesses(method, target, &[]), expected, "{method} {target}");
    }
}

#[test]
fn a_few_operations_need_more_than_a_decision() {
    let operation = |method: Method, path: &str, query: &str| {
        let address = RequestAddress::new(b"gateway", path, &[]).unwrap();
        Operation::new(
            &method,
            &address,
            &Query::parse(query).unwrap(),
            &HeaderMap::new(),
        )
    };
    let buckets = operation(Method::GET, "/", "");
    assert!(buckets.is_list_buckets() && !buckets.is_delete_objects());
    assert_eq!(buckets.name(), Some("ListBuckets"));
    let delete = operation(Method::POST, "/b", "delete");
    assert!(delete.is_delete_objects() && !delete.is_list_buckets());
    let unknown = operation(Method::POST, "/b", "");
    assert_eq!(unknown.name(), None);
    assert!(!unknown.is_delete_objects() && !unknown.is_list_buckets());
    let texts: Vec<_> = delete_accesses(b"b", b"k", true).iter().map(text).collect();
    assert_eq!(texts, ["delete b/k", "versions b/k"]);
}

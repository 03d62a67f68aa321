//! The identity of an object at the store.

use http::{HeaderValue, Uri};
use percent_encoding::percent_decode_str;
use pushdown::pipeline::Digest;

use crate::s3::query;

/// The address of an object: host, path and version of the request that reads it, percent-decoded.
///
/// The host is part of it, because the path of a virtual-hosted address lacks the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectId {
    digest: Digest,
    container: u64,
    path_hash: u64,
}

impl ObjectId {
    /// The object that a request to `host` with this target reads.
    pub fn new(host: Option<&HeaderValue>, target: &Uri) -> Self {
        let path: Vec<u8> = percent_decode_str(target.path()).collect();
        let version = target
            .query()
            .and_then(|query| query::values(query, "versionId").next())
            .unwrap_or_default();
        let version: Vec<u8> = percent_decode_str(version).collect();
        let host = host.map_or(&b""[..], HeaderValue::as_bytes).to_ascii_lowercase();
        let bucket = path.split(|byte| *byte == b'/').nth(1).unwrap_or_default();
        Self {
            container: Digest::from_parts([&host[..], bucket]).first_u64(),
            digest: Digest::from_parts([&host, &path, &version]),
            path_hash: Digest::new(&path).first_u64(),
        }
    }

    /// The id of a cell of the table in this object, by the digest of its bytes. Only for keys: an authorization is for objects.
    #[must_use]
    pub fn cell(&self, bytes: &Digest) -> Self {
        let digest = Digest::from_parts([self.digest.as_bytes(), &b"cell"[..], bytes.as_bytes()]);
        Self {
            container: Digest::from_parts([&self.container.to_le_bytes()[..], b"cells"]).first_u64(),
            path_hash: digest.first_u64(),
            digest,
        }
    }

    /// Whether it is an object with this name, in any version.
    pub fn is_at(&self, bucket: &[u8], key: &[u8]) -> bool {
        Digest::new(&[b"/", bucket, b"/", key].concat()).first_u64() == self.path_hash
    }

    /// Digest of host, path and version.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// What groups objects into data sets: a hash of host and bucket.
    pub const fn container(&self) -> u64 {
        self.container
    }

    /// The first 64 bits of the SHA-256 of the percent-decoded path `/bucket/key`. A reader can compute it: it decides
    /// whether values of the object are cached.
    pub const fn path_hash(&self) -> u64 {
        self.path_hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(host: &'static str, target: &'static str) -> ObjectId {
        ObjectId::new(Some(&HeaderValue::from_static(host)), &Uri::from_static(target))
    }

    #[test]
    fn equal_addresses_have_equal_ids() {
        let first = id("store:80", "/b/a%20b?X-Amz-Signature=1");
        assert_eq!(first, id("STORE:80", "/b/%61%20b?x=y"));
        for other in [
            id("other:80", "/b/a%20b"),
            id("store:80", "/b/a+b"),
            id("store:80", "/b/a%20b?versionId=1"),
        ] {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn objects_of_a_bucket_are_in_one_container() {
        let container = |target| id("store", target).container();
        assert_eq!(
            container("/photos/a/1.jpg"),
            container("/photos/2.jpg?versionId=7")
        );
        assert_ne!(container("/photos/a"), container("/photo/s/a"));
    }

    #[test]
    fn a_cell_differs_from_its_object_and_from_other_cells() {
        let object = id("store", "/b/table.parquet");
        let cell = object.cell(&Digest::new(b"1"));
        assert_eq!(cell, object.cell(&Digest::new(b"1")));
        for other in [
            object,
            object.cell(&Digest::new(b"2")),
            id("store", "/b/other.parquet").cell(&Digest::new(b"1")),
        ] {
            assert_ne!(cell, other);
        }
        assert_ne!(cell.container(), object.container());
        assert_eq!(cell.container(), object.cell(&Digest::new(b"2")).container());
    }

    /// Readers compute the same hash: it never changes.
    #[test]
    fn the_path_hash_is_that_of_the_decoded_path() {
        let id = id("store", "/photos/cat%201.jpg?versionId=7");
        assert_eq!(id.path_hash(), Digest::new(b"/photos/cat 1.jpg").first_u64());
        assert!(id.is_at(b"photos", b"cat 1.jpg"));
        assert!(!id.is_at(b"photos", b"cat%201.jpg") && !id.is_at(b"photo", b"cat 1.jpg"));
    }
}
